package proposal

import (
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/inert"
)

// Host is how a change of the host itself was rehearsed before anybody is asked about it (SM-913).
type Host struct {
	Release    string        `json:"release,omitempty"`     // digest of the release that the host would run by; "" = the one of now
	Build      string        `json:"build,omitempty"`       // as that release says of itself
	Schema     int           `json:"schema"`                // of the database that it wants
	Was        int           `json:"was"`                   // schema of now; another one = SM-085, and a quiet trial
	StartsFrom string        `json:"starts_from,omitempty"` // what sandboxes of groups would start from, a clause; "" = what they start from now
	Rehearsed  []string      `json:"rehearsed"`             // what was tried, a clause each, the host's words
	Not        []string      `json:"not,omitempty"`         // what a rehearsal cannot try here
	Took       time.Duration `json:"took"`                  // all of it
	Migration  time.Duration `json:"migration"`             // what the database took of that; a trial may take twice as long
}

// Quiet reports whether a trial of it goes by another schema, and so does less than a host otherwise does.
func (h Host) Quiet() bool { return h.Schema != h.Was }

// Runs says in a clause by which programs the host would run, what sandboxes would start from, and how its database changes; "" = as now.
func (h Host) Runs() string {
	var clauses []string
	if h.Release != "" {
		clauses = append(clauses, fmt.Sprintf("the host runs by release %.12s (build %s)", h.Release, inert.Line(h.Build)))
	}
	if h.StartsFrom != "" {
		clauses = append(clauses, inert.Line(h.StartsFrom))
	}
	if h.Quiet() {
		clauses = append(clauses, fmt.Sprintf("its database goes from schema %d to %d", h.Was, h.Schema))
	}
	return strings.Join(clauses, ", and ")
}
