package right

import (
	"cmp"
	"slices"

	"sallyport/internal/base/id"
)

// Party is somebody as a door has recognized them: a person of the home, or a stranger by what a platform has authenticated. The zero value
// is nobody.
type Party struct {
	Person   id.Person
	Identity string // platform:account
}

// String names a party among all: a person's id, or a stranger's identity; "" for nobody.
func (p Party) String() string { return cmp.Or(string(p.Person), p.Identity) }

// is reports whether both are the same somebody.
func (p Party) is(other Party) bool { return p.String() != "" && p.String() == other.String() }

// Tried is a change on trial, and who stands behind it.
type Tried struct {
	Approvers []Party // whose yes let it land
	Requester Party   // who asked for it
	People    []Person
}

// ends are those whose word ends a trial, by what they have to do with the change (SM-140).
var ends = []struct {
	as string
	is func(t Tried, who Party) bool
}{
	{"who approved it", func(t Tried, who Party) bool { return slices.ContainsFunc(t.Approvers, who.is) }},
	{"who asked for it", func(t Tried, who Party) bool { return who.is(t.Requester) }},
	{"the owner", func(t Tried, who Party) bool {
		return slices.ContainsFunc(t.People, func(p Person) bool {
			return who.is(Party{Person: p.ID}) && slices.Contains(p.Held, Held{Role: Owner})
		})
	}},
}

// EndedBy says as what somebody may confirm or roll back what is on trial; "" if they may not, and their words do nothing.
func (t Tried) EndedBy(who Party) string {
	for _, e := range ends {
		if e.is(t, who) {
			return e.as
		}
	}
	return ""
}
