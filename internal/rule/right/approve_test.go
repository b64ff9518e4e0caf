package right_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/rule/right"
)

// who reads people: a name, what they are, and ! if nothing reaches them.
func who(people ...string) (all []right.Person) {
	for _, text := range people {
		name, roles, _ := strings.Cut(text, ":")
		p := right.Person{ID: id.Person(strings.TrimSuffix(name, "!")), Reachable: !strings.HasSuffix(name, "!")}
		for role := range strings.SplitSeq(roles, ",") {
			r, group, _ := strings.Cut(role, " of ")
			p.Held = append(p.Held, right.Held{Role: right.Role(r), Group: group})
		}
		all = append(all, p)
	}
	return all
}

func TestAChangeGoesToWhomItsReachNames(t *testing.T) {
	all := []string{"ann:owner", "gil:global_admin", "ada:group_admin of ada", "bob:group_admin of bob", "may:member of ada"}
	two := right.Rules{People: 2}
	for _, test := range []struct {
		name   string
		class  right.Class
		people []string
		wisher string
		rules  right.Rules
		want   string // ask; may; yeses; words, or why nobody can
	}{
		{"the group's admin", right.Group, all, "may", right.Rules{}, "ada; ada gil ann; 1"},
		{"two of them", right.Group, append(all, "eve:group_admin of ada"), "may", right.Rules{}, "ada eve; ada eve gil ann; 1"},
		{"an admin who is not there", right.Group, []string{"ann:owner", "gil:global_admin", "ada!:group_admin of ada"}, "may", right.Rules{}, "gil; ada gil ann; 1"},
		{"no admin is there", right.Group, []string{"ann:owner", "gil!:global_admin", "ada!:group_admin of ada"}, "may", right.Rules{}, "ann; ada gil ann; 1"},
		{"an owner alone", right.Group, []string{"ann:owner"}, "ann", right.Rules{}, "ann; ann; 1"},
		{"roles in several places", right.Group, []string{"ann:owner,group_admin of ada"}, "ann", right.Rules{}, "ann; ann; 1"},
		{"only another group's admin", right.Group, []string{"ann!:owner", "bob:group_admin of bob"}, "may", right.Rules{}, "none of those who may can be reached"},
		{"nobody at all", right.Group, nil, "may", right.Rules{}, "the home has no owner"},
		{"admins without an owner", right.Group, []string{"gil:global_admin", "ada:group_admin of ada"}, "may", right.Rules{}, "the home has no owner"},
		{"a member alone", right.Group, []string{"may:member of ada"}, "may", right.Rules{}, "the home has no owner"},

		{"the host", right.Host, all, "may", right.Rules{}, "ann; ann; 1 CONFIRM HOST"},
		{"both", right.Combined, all, "may", right.Rules{}, "ann; ann; 1 CONFIRM HOST"},
		{"what nobody knows", "", all, "may", right.Rules{}, "ann; ann; 1 CONFIRM HOST"},
		{"an owner who is not there", right.Host, []string{"ann!:owner", "gil:global_admin"}, "may", right.Rules{}, "it is the owner's to approve, who cannot be reached"},

		{"two for a group", right.Group, all, "may", two, "ada gil; ada gil ann; 2"},
		{"two where one is there", right.Group, []string{"ann:owner", "gil!:global_admin"}, "may", two, "policy.yaml wants 2 people to approve it (approvals.people: 2), and one of those who may can be reached. With approvals.people: 1 one person may approve it"},
		{"two where the owner asked for it, and an admin is there", right.Group, []string{"ann:owner", "ada:group_admin of ada"}, "ann", right.Rules{People: 2, NoSelf: true}, "policy.yaml wants 2 people to approve it"},
		{"two for the host", right.Host, all, "may", two, "ann gil; ann gil; 2 CONFIRM HOST, one of them ann"},
		{"two for the host, alone", right.Host, []string{"ann:owner"}, "may", two, "policy.yaml wants 2 people to approve it (approvals.people: 2), and one of those"},
		{"two for the host, without its owner", right.Host, []string{"ann!:owner", "gil:global_admin", "eve:global_admin"}, "may", two, "it is the owner's to approve, who cannot be reached"},

		{"not who wished it", right.Group, all, "ada", right.Rules{NoSelf: true}, "gil; gil ann; 1"},
		{"somebody else wished it", right.Group, all, "irc:x", right.Rules{NoSelf: true}, "ada; ada gil ann; 1"},
		{"nobody knows who wished it", right.Group, all, "", right.Rules{NoSelf: true}, "ada gil; ada gil ann; 2"},
		{"nor who spoke when it was wished", right.Group, all, "may ada", right.Rules{NoSelf: true}, "gil; gil ann; 1"},
		{"nor any who spoke, and nobody is named", right.Group, append(all, "eve:group_admin of ada"), " ada gil", right.Rules{NoSelf: true}, "eve ann; eve ann; 2"},
		{"all who may spoke", right.Group, all, "may ada gil ann", right.Rules{NoSelf: true}, "policy.yaml has nobody approve what they asked for (approvals.self: refuse), and the owner of the home asked for this, or spoke when it was asked for"},
		{"who spoke may where all may", right.Group, all, "may ada", right.Rules{}, "ada; ada gil ann; 1"},
		{"an owner alone, and nobody knows who wished it", right.Group, []string{"ann:owner"}, "", right.Rules{NoSelf: true}, "nobody knows who asked for it, so policy.yaml wants two people"},
		{"an owner alone, who wished it", right.Group, []string{"ann:owner"}, "ann", right.Rules{NoSelf: true}, "policy.yaml has nobody approve what they asked for (approvals.self: refuse), and the owner of the home asked for this, or spoke when it was asked for"},
		{"the host, wished by its owner", right.Host, all, "ann", right.Rules{NoSelf: true}, "policy.yaml has nobody approve what they asked for (approvals.self: refuse), and the owner of the home asked for this, or spoke when it was asked for"},
		{"the host, wished by its owner, two", right.Host, append(all, "eve:global_admin"), "ann", right.Rules{NoSelf: true, People: 2}, "policy.yaml has nobody approve what they asked for (approvals.self: refuse), and the owner of the home asked for this, or spoke when it was asked for"},
		{"the host, wished by an admin", right.Host, all, "gil", right.Rules{NoSelf: true}, "ann; ann; 1 CONFIRM HOST"},
	} {
		wishers := strings.Split(test.wisher, " ") // who wished it, and who else spoke then
		n, err := right.Approvers(right.Asked{Class: test.class, Group: "ada", Wisher: wishers[0], Others: wishers[1:], People: who(test.people...), Rules: test.rules})
		got := strings.TrimSuffix(strings.Trim(fmt.Sprintf("%s; %s; %d %s", n.Ask, n.May, n.Yeses, n.Typed), " "), " ")
		got = strings.NewReplacer("[", "", "]", "").Replace(got)
		if len(n.Must) > 0 {
			got += ", one of them " + string(n.Must[0])
		}
		if err != nil {
			got = err.Error()
			if problem.KindOf(err) != problem.Refused || problem.Of(err).Next == "" || !strings.HasPrefix(got, "nobody can approve this change: ") {
				t.Errorf("%s: %v", test.name, err)
			}
			got = strings.TrimPrefix(got, "nobody can approve this change: ")
		}
		if got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
			t.Errorf("%s: %q, not %q", test.name, got, test.want)
		}
	}
}

// TestWhoIsLetInIsDecidedByTheLadder holds CH-052 and CH-060: whom the card goes to, and who else may answer it.
func TestWhoIsLetInIsDecidedByTheLadder(t *testing.T) {
	all := []string{"ann:owner", "gil:global_admin", "ada:group_admin of ada", "bob:group_admin of bob", "may:member of ada"}
	for _, test := range []struct {
		group  string
		people []string
		want   string // asked; may
	}{
		{"ada", all, "[ada]; [ada gil ann]"},
		{"ada", []string{"ann:owner", "gil:global_admin", "ada!:group_admin of ada"}, "[gil]; [ada gil ann]"},
		{"ada", []string{"ann:owner", "bob:group_admin of bob"}, "[ann]; [ann]"},
		{"ada", []string{"ann!:owner", "may:member of ada"}, "[]; [ann]"},
		{"", all, "[ann]; [ann gil]"},
		{"", []string{"ann!:owner", "gil:global_admin", "eve:global_admin"}, "[gil eve]; [ann gil eve]"},
		{"", []string{"ada:group_admin of ada"}, "[]; []"},
	} {
		n := right.Admission(test.group, who(test.people...))
		if got := fmt.Sprintf("%s; %s", n.Ask, n.May); got != test.want || !slices.Equal(n.May, n.No) {
			t.Errorf("%q of %q: %s, not %s", test.group, test.people, got, test.want)
		}
	}
}

func TestWhoBelongsToAGroupIsAKnownPersonWithARoleForIt(t *testing.T) {
	for person, want := range map[string]bool{
		"ann:owner": true, "gil:global_admin": true, "ada:group_admin of ada": true, "may:member of ada": true, "bob:member of ada,member of bob": true,
		"bob:group_admin of bob": false, "may:member": false, "x:": false, ":owner": false, ":member of ada": false,
	} {
		if who(person)[0].Of("ada") != want {
			t.Errorf("%q belongs to ada: %t", person, !want)
		}
	}
}

func TestWhatIsSaidOfApprovalsIsWhatHolds(t *testing.T) {
	for want, rules := range map[string]right.Rules{
		"one person approves what a group asks for; a yes to a change of the host counts after 1m0s":   {},
		"one person approves what a group asks for; a yes to a change of the host counts after 1h0m0s": {People: 1, CoolDown: time.Hour},
		"2 people approve what a group asks for; nobody approves what they asked for":                  {People: 2, NoSelf: true},
	} {
		if got := rules.Words(); got != want {
			t.Errorf("%+v: %q, not %q", rules, got, want)
		}
	}
	for want, held := range map[string]right.Held{"owner": {Role: right.Owner}, "group_admin of ada": {Role: right.GroupAdmin, Group: "ada"}} {
		if got := held.Words(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// Where the policy is why nobody can approve, its file is what a person opens next.
func TestWhoMayNotApproveByThePolicyIsToldItsFile(t *testing.T) {
	for name, test := range map[string]struct {
		rules  right.Rules
		people []string
		want   string
	}{
		"two people":          {right.Rules{People: 2}, []string{"ann:owner"}, "open the policy"},
		"what they asked for": {right.Rules{NoSelf: true}, []string{"ann:owner"}, "open the policy"},
		"no owner":            {right.Rules{People: 2}, nil, "sallyport doctor"},
		"nobody is there":     {right.Rules{}, []string{"ann!:owner"}, "sallyport doctor"},
	} {
		_, err := right.Approvers(right.Asked{Class: right.Group, Wisher: "ann", People: who(test.people...), Rules: test.rules, Mend: "open the policy"})
		if got := problem.Of(err).Next; got != test.want {
			t.Errorf("%s: next is %q, not %q: %v", name, got, test.want, err)
		}
	}
}

func TestAnOwnerAloneThinksBeforeTheyApproveAChangeOfTheHost(t *testing.T) {
	people := who("ann:owner", "gil:global_admin")
	asked := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		class right.Class
		rules right.Rules
		after time.Duration
		want  time.Duration
	}{
		{"at once", right.Host, right.Rules{}, 0, time.Minute},
		{"a while after", right.Combined, right.Rules{}, 59 * time.Second, time.Second},
		{"in time", right.Host, right.Rules{}, time.Minute, 0},
		{"as long as the policy says", right.Host, right.Rules{CoolDown: time.Hour}, time.Minute, 59 * time.Minute},
		{"a second person says yes too", right.Host, right.Rules{People: 2}, 0, 0},
		{"a group", right.Group, right.Rules{}, 0, 0},
		{"a clock that went back", right.Host, right.Rules{}, -time.Hour, time.Minute},
	} {
		n, err := right.Approvers(right.Asked{Class: test.class, People: people, Rules: test.rules})
		if got := n.Wait(asked, asked.Add(test.after)); err != nil || got != test.want {
			t.Errorf("%s: %s more, not %s; %v", test.name, got, test.want, err)
		}
	}
}

// Whatever roles people have and whatever the policy says: nobody decides whose role does not say so, and an answer can be given.
func TestNobodyDecidesWithoutARoleForIt(t *testing.T) {
	person := rapid.Custom(func(t *rapid.T) right.Person {
		p := right.Person{ID: id.Person(rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "id")), Reachable: rapid.Bool().Draw(t, "there")}
		for range rapid.IntRange(0, 2).Draw(t, "roles") {
			p.Held = append(p.Held, right.Held{
				Role:  rapid.SampledFrom([]right.Role{right.Owner, right.GlobalAdmin, right.GroupAdmin, right.Member, "", "OWNER"}).Draw(t, "role"),
				Group: rapid.SampledFrom([]string{"", "ada", "bob"}).Draw(t, "group"),
			})
		}
		return p
	})
	rapidtest.Check(t, func(t *rapid.T) {
		a := right.Asked{
			Class: rapid.SampledFrom([]right.Class{right.Group, right.Host, right.Combined, "", "x"}).Draw(t, "class"), Group: "ada",
			Wisher: rapid.SampledFrom([]string{"", "a", "b", "irc:x"}).Draw(t, "wisher"), People: rapid.SliceOfN(person, 0, 4).Draw(t, "people"),
			Others: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "irc:x"}), 0, 2).Draw(t, "others"),
			Rules:  right.Rules{People: rapid.IntRange(-1, 3).Draw(t, "two"), NoSelf: rapid.Bool().Draw(t, "self")},
		}
		n, err := right.Approvers(a)
		for _, may := range n.May {
			entitled := slices.ContainsFunc(a.People, func(p right.Person) bool {
				return p.ID == may && slices.ContainsFunc(p.Held, func(h right.Held) bool {
					return h.Role == right.Owner || h.Role == right.GlobalAdmin && (a.Class == right.Group || n.Yeses > 1) || h == right.Held{Role: right.GroupAdmin, Group: "ada"} && a.Class == right.Group
				})
			})
			if !entitled || may == "" || a.Rules.NoSelf && (string(may) == a.Wisher || slices.Contains(a.Others, string(may))) {
				t.Fatalf("%q may: %+v", may, n)
			}
		}
		if err == nil && (len(n.Ask) < n.Yeses || n.Yeses < 1) {
			t.Fatalf("%d are asked for %d yeses", len(n.Ask), n.Yeses)
		}
		if (a.Class == right.Group) != (n.Typed == "") {
			t.Fatalf("%q is typed for %q", n.Typed, a.Class)
		}
		if err == nil && a.Class != right.Group && n.Yeses > 1 && len(n.Must) == 0 {
			t.Fatal("two admins would decide about the host")
		}
		for _, asked := range n.Ask {
			if !slices.Contains(n.May, asked) {
				t.Fatalf("%q is asked and may not", asked)
			}
		}
	})
}
