package right_test

import (
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/rule/right"
)

// TestWhoMayAskForAVerbIsSaidByRoleAndGroup holds the one table of rights: each role in its reach, and closed for everything else.
func TestWhoMayAskForAVerbIsSaidByRoleAndGroup(t *testing.T) {
	const (
		say    = "POST /v1/groups/{group}/say"
		mine   = "GET /v1/messages"
		change = "POST /v1/changes/{change}/confirm"
		add    = "POST /v1/people"
		policy = "POST /v1/conversations/{conversation}/policy"
		role   = "POST /v1/people/{person}/role"
		yes    = "POST /v1/approvals/{approval}/approve"
	)
	held := func(r right.Role, group string) right.Asker {
		return right.Asker{Held: []right.Held{{Role: r, Group: group}}}
	}
	for _, test := range []struct {
		name, verb, group string
		who               right.Asker
		may               bool
	}{
		{"the owner says", say, "ada", held(right.Owner, ""), true},
		{"the owner changes", change, "", held(right.Owner, ""), true},
		{"the owner adds", add, "", held(right.Owner, ""), true},
		{"a global admin says", say, "ada", held(right.GlobalAdmin, ""), true},
		{"a global admin changes", change, "", held(right.GlobalAdmin, ""), false},
		{"a global admin adds", add, "", held(right.GlobalAdmin, ""), false},
		{"an admin says in their group", say, "ada", held(right.GroupAdmin, "ada"), true},
		{"an admin says in another", say, "bob", held(right.GroupAdmin, "ada"), false},
		{"a member says in their group", say, "ada", held(right.Member, "ada"), true},
		{"a member says in another", say, "bob", held(right.Member, "ada"), false},
		{"the owner is asked", say, "host", held(right.Owner, ""), true},
		{"a global admin is asked", say, "host", held(right.GlobalAdmin, ""), true},
		{"an admin is asked", say, "host", held(right.GroupAdmin, "ada"), true},
		{"an admin reads what is asked", "GET /v1/groups/{group}/watch", "host", held(right.GroupAdmin, "ada"), true},
		{"a member is asked", say, "host", held(right.Member, "ada"), false},
		{"a member of no group that there is", say, "host", held(right.Member, "host"), false},
		{"an admin of no group", say, "host", held(right.GroupAdmin, ""), false},
		{"a stranger is asked", say, "host", right.Asker{}, false},
		{"an admin shows the group", "GET /v1/groups/{group}", "host", held(right.GroupAdmin, "ada"), false},
		{"an admin approves in their group", yes, "ada", held(right.GroupAdmin, "ada"), true},
		{"an admin approves in another", yes, "bob", held(right.GroupAdmin, "ada"), false},
		{"an admin approves what is no group's", yes, "", held(right.GroupAdmin, "ada"), false},
		{"a global admin approves in a group", yes, "ada", held(right.GlobalAdmin, ""), true},
		{"a global admin approves what is no group's", yes, "", held(right.GlobalAdmin, ""), false},
		{"the owner approves what is no group's", yes, "", held(right.Owner, ""), true},
		{"a member approves", yes, "ada", held(right.Member, "ada"), false},
		{"a member reads their own", mine, "", held(right.Member, "ada"), true},
		{"a member changes", change, "", held(right.Member, "ada"), false},
		{"a member adds", add, "", held(right.Member, "ada"), false},
		{"an admin sets a policy", policy, "", held(right.GroupAdmin, "ada"), true},
		{"a global admin sets a policy", policy, "", held(right.GlobalAdmin, ""), true},
		{"a member sets a policy", policy, "", held(right.Member, "ada"), false},
		{"an admin of no group sets a policy", policy, "", held(right.GroupAdmin, ""), false},
		{"root sets a policy", policy, "", right.Asker{Root: true}, true},
		{"an admin takes a role", role, "", held(right.GroupAdmin, "ada"), true},
		{"a member takes a role", role, "", held(right.Member, "ada"), false},
		{"root takes a role, who is no person", role, "", right.Asker{Root: true}, false},
		{"an admin wires", "POST /v1/conversations/{conversation}/wire", "", held(right.GroupAdmin, "ada"), false},
		{"an admin removes a person", "POST /v1/people/{person}/remove", "", held(right.GroupAdmin, "ada"), false},
		{"root changes", change, "", right.Asker{Root: true}, true},
		{"root adds, who is no person", add, "", right.Asker{Root: true}, false},
		{"a stranger says", say, "ada", right.Asker{}, false},
		{"a stranger says in no group", say, "", right.Asker{}, false},
		{"a stranger reads", mine, "", right.Asker{}, false},
		{"a role that there is not", say, "ada", held("king", "ada"), false},
		{"a member of no group", say, "", held(right.Member, ""), false},
		{"the owner, a verb that there is not", "POST /v1/nothing", "", held(right.Owner, ""), false},
		{"root, a verb that there is not", "POST /v1/nothing", "", right.Asker{Root: true}, false},
	} {
		err := right.May(test.who, test.verb, test.group)
		if (err == nil) != test.may || err != nil && problem.KindOf(err) != problem.Denied {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestWhoMayNotIsToldWhoMay(t *testing.T) {
	member := right.Asker{Held: []right.Held{{Role: right.Member, Group: "ada"}}}
	for _, test := range []struct {
		verb, group string
		who         right.Asker
		want        string
	}{
		{"POST /v1/nothing", "", member, "nobody may ask for POST /v1/nothing"},
		{"POST /v1/people", "", member, "only the owner of this home"},
		{"GET /v1/messages", "", right.Asker{}, "this home does not know you"},
		{"GET /v1/people", "", member, "only who decides about a group"},
		{"POST /v1/groups/{group}/say", "host", member, "nothing is asked of you"},
		{"POST /v1/groups/{group}/say", "bob", member, `you have no role in the group "bob"`},
	} {
		if p := problem.Of(right.May(test.who, test.verb, test.group)); !strings.HasPrefix(p.Text, test.want) || p.Next == "" {
			t.Errorf("%s: %q, next %q; want %q", test.verb, p.Text, p.Next, test.want)
		}
	}
}

// TestWhoDecidesAboutAGroupIsItsAdminAndWhoStandsHigher holds what is the same wherever a group is decided about.
func TestWhoDecidesAboutAGroupIsItsAdminAndWhoStandsHigher(t *testing.T) {
	for _, test := range []struct {
		held  right.Held
		group string
		want  bool
	}{
		{right.Held{Role: right.Owner}, "ada", true}, {right.Held{Role: right.GlobalAdmin}, "ada", true}, {right.Held{Role: right.GroupAdmin, Group: "ada"}, "ada", true},
		{right.Held{Role: right.GroupAdmin, Group: "bob"}, "ada", false}, {right.Held{Role: right.Member, Group: "ada"}, "ada", false}, {right.Held{}, "ada", false},
		{right.Held{Role: right.Owner}, "", true}, {right.Held{Role: right.GlobalAdmin}, "", true}, {right.Held{Role: right.GroupAdmin}, "", false},
	} {
		if right.Decides([]right.Held{test.held}, test.group) != test.want {
			t.Errorf("%+v, of %q: %t", test.held, test.group, !test.want)
		}
	}
}
