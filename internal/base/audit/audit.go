// Package audit is the record of who did what: rows that only grow, each bound to the one before it.
package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"sallyport/internal/base/id"
)

// Actor is who did something.
type Actor struct {
	Kind string `json:"kind"` // person, host or agent
	Name string `json:"name"` // login name, "sallyport", or a session's identity
	UID  int    `json:"uid"`  // of a person at the terminal; -1 otherwise

	Person   id.Person `json:"person,omitempty"`   // whose identity this is, as the home knows them
	Identity string    `json:"identity,omitempty"` // platform:account, as the platform authenticated it
}

// Host is the actor of what deterministic code does by itself.
var Host = Actor{Kind: "host", Name: "sallyport", UID: -1}

// Entry is one thing that happened. Seq, Previous and Hash are set by the store when it is appended.
type Entry struct {
	Seq      int64             `json:"seq"`     // from 1, without gaps
	At       time.Time         `json:"at"`      // UTC, milliseconds
	Actor    Actor             `json:"actor"`   //
	Change   string            `json:"change"`  // change id; empty for what concerns the home
	Subject  string            `json:"subject"` // id of the thing: change, approval, checkpoint, session, landing
	Verb     string            `json:"verb"`    // past tense: requested, approved, landed …
	Reason   string            `json:"reason,omitempty"`
	Digests  map[string]string `json:"digests,omitempty"` // base, tree, policy, proposal, commit …
	Previous string            `json:"previous"`          // hash of the entry before; empty for the first
	Hash     string            `json:"hash"`              // Sum of this entry

	Stored string `json:"-"` // the JSON that Hash was made of, as it was stored; "" for entries from before it was
}

// Seal binds e to its predecessor: a store appends e as Seal returns it.
func (e Entry) Seal() Entry {
	e.Stored = e.form()
	e.Hash = sum(e.Stored)
	return e
}

// Sum returns the hash that binds e to its predecessor: SHA-256 over the entry's JSON without its own hash.
func (e Entry) Sum() string { return sum(e.form()) }

func sum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// form is the entry's JSON without its own hash. Fields that are added to it must be left out where they are empty:
// older entries have no JSON of their own, and are hashed by this one.
func (e Entry) form() string {
	e.Hash = ""
	e.At = e.At.UTC().Truncate(time.Millisecond)
	raw, err := json.Marshal(e) // maps are marshalled in key order
	if err != nil {
		panic("audit entry cannot be encoded: " + err.Error()) // strings, ints and a time always can
	}
	return string(raw)
}
