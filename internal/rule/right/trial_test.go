package right_test

import (
	"testing"

	"sallyport/internal/base/id"
	"sallyport/internal/rule/right"
)

// TestATrialIsEndedByWhoApprovedItAskedForItOrOwnsTheHome holds SM-140: the approver, the requester and the owner, and nobody else.
func TestATrialIsEndedByWhoApprovedItAskedForItOrOwnsTheHome(t *testing.T) {
	person := func(name string) right.Party {
		return right.Party{Person: id.Person(name), Identity: "terminal:" + name}
	}
	stranger := func(account string) right.Party { return right.Party{Identity: account} }
	people := who("ann:owner", "gil:global_admin", "ada:group_admin of ada", "may:member of ada")
	for _, test := range []struct {
		name                string
		approver, requester right.Party
		who                 right.Party
		want                string
	}{
		{"the approver", person("ada"), person("may"), person("ada"), "who approved it"},
		{"the requester", person("ada"), person("may"), person("may"), "who asked for it"},
		{"the requester from another place", person("ada"), right.Party{Person: "may", Identity: "irc:may"}, person("may"), "who asked for it"},
		{"the owner", person("ada"), person("may"), person("ann"), "the owner"},
		{"an owner who did all", person("ann"), person("ann"), person("ann"), "who approved it"},
		{"a stranger who asked", person("ann"), stranger("terminal:0"), stranger("terminal:0"), "who asked for it"},

		{"an admin who did nothing", person("ada"), person("may"), person("gil"), ""},
		{"another member", person("ann"), person("may"), person("ada"), ""},
		{"another stranger", person("ann"), stranger("terminal:0"), stranger("terminal:7"), ""},
		{"a stranger at the requester's account, who is a person", person("ann"), person("may"), stranger("terminal:may"), ""},
		{"a person, where a stranger asked", person("ann"), stranger("irc:x"), right.Party{Person: "gil", Identity: "irc:x"}, ""},
		{"nobody, where nobody knows who asked", person("ann"), right.Party{}, right.Party{}, ""},
		{"anybody, where nobody approved", right.Party{}, right.Party{}, person("gil"), ""},
	} {
		if got := (right.Tried{Approvers: []right.Party{person("eli"), test.approver}, Requester: test.requester, People: people}).EndedBy(test.who); got != test.want {
			t.Errorf("%s: %q, not %q", test.name, got, test.want)
		}
	}
}
