package session

import "time"

// AskedMax is how many kinds of requests are told apart for one change; the rest is counted together, by verdict.
const AskedMax = 200

// Asked is what a change's programs asked of their way out: requests of one kind, counted. Its texts are an agent's.
type Asked struct {
	Host    string    `json:"host"` // "" = of kinds that are not told apart any more
	Port    uint16    `json:"port"`
	Method  string    `json:"method"`          // CONNECT, GET
	Route   string    `json:"route,omitempty"` // of the host's own, such as model
	Verdict string    `json:"verdict"`         // allowed, refused, failed
	Why     string    `json:"why,omitempty"`   // one clause, for a person
	Count   int64     `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Kind is what tells lines apart.
func (a Asked) Kind() Asked {
	a.Count, a.First, a.Last = 0, time.Time{}, time.Time{}
	return a
}

// Rest is the line in which a kind is counted that there is no room for.
func (a Asked) Rest() Asked {
	return Asked{Verdict: a.Verdict, Count: a.Count, First: a.First, Last: a.Last}
}

// Add counts more of the same kind.
func (a *Asked) Add(more Asked) {
	a.Count += more.Count
	if a.First.IsZero() || more.First.Before(a.First) {
		a.First = more.First
	}
	if more.Last.After(a.Last) {
		a.Last = more.Last
	}
}
