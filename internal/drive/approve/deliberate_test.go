package approve_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/port/tool"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// proposed is a change that the agent of a group made to files, as it waits for a person.
func proposed(h *drivetest.Home, files ...string) (yes func(w approve.Words) error, show func() view.Detail) {
	h.T.Helper()
	yes, show, _ = proposedWith(h, files...)
	return yes, show
}

// proposedWith is proposed, with the daemon.
func proposedWith(h *drivetest.Home, files ...string) (yes func(w approve.Words) error, show func() view.Detail, c *control.Controller) {
	h.T.Helper()
	a, _ := h.Assist(func(_ context.Context, s *drivetest.Scene, _ string) (string, error) {
		for _, file := range files {
			s.Write(file, "another\n")
		}
		return "", nil
	})
	c, _ = a.Begin()
	row := a.Wished(c, "chg-aaaaaaaa", "Change it")
	time.Sleep(time.Minute)
	d := h.Is(c, row.ID, change.Working)
	said := tool.Swap{PerFileSummaries: map[string]string{}, OverallSummary: "Change it", CommitSHA: "0123456"}
	for _, file := range files {
		said.PerFileSummaries[file] = "is another"
	}
	if _, err := a.Call(h.T.Context(), tool.RequestSwap, said, string(d.Checkpoints[0].Tree)); err != nil {
		h.T.Fatal(err)
	}
	for h.Show(c, row.ID).Change.State != change.AwaitingApproval {
		time.Sleep(time.Second)
	}
	d = h.Show(c, row.ID)
	return func(w approve.Words) error {
		return c.Approve(h.T.Context(), d.Approval.ID, d.Proposal.Digest, h.By(), w)
	}, func() view.Detail { return h.Show(c, row.ID) }, c
}

// TestAChangeOfTheHostIsNotApprovedWhereNoKeeperJudgesIt: nobody is given a code for what could not land.
func TestAChangeOfTheHostIsNotApprovedWhereNoKeeperJudgesIt(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		yes, show, c := proposedWith(h, "docs/more.md")
		time.Sleep(time.Minute)
		err := yes(approve.Words{Via: "chat", Marked: true, Typed: "CONFIRM HOST"})
		if problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport serve" {
			t.Errorf("%v", err)
		}
		if d := show(); d.Change.State != change.AwaitingApproval || d.Approval.Decision != approval.Pending || c.Codes.Any() {
			t.Errorf("%s, %s", d.Change.State, d.Approval.Decision)
		}
	})
}

// TestAChangeOfTheHostIsApprovedInWordsAndNotAtOnce holds SM-082 to SM-084, SM-910 and SM-912.
func TestAChangeOfTheHostIsApprovedInWordsAndNotAtOnce(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		drivetest.Keep(h)
		yes, show := proposed(h, "docs/more.md")
		card := show().Proposal.Card
		if card.Title != "Change the host" || card.Class != "host" || card.Typed != "CONFIRM HOST" || len(card.Banner) != 1 || !strings.HasPrefix(card.Banner[0], "Host-level changes run with full credential scope") {
			t.Errorf("its card is %q, %q, %q", card.Class, card.Typed, card.Banner)
		}
		typed := approve.Words{Via: "chat", Marked: true, Typed: "CONFIRM HOST"}
		for _, words := range []string{"", "confirm host", "CONFIRM HOST ", "yes"} {
			if err := yes(approve.Words{Via: "chat", Marked: true, Typed: words}); !errors.Is(err, approval.ErrUntyped) || !strings.Contains(err.Error(), "CONFIRM HOST") {
				t.Errorf("%q: %v", words, err)
			}
		}
		asked := show().Approval.Asked
		time.Sleep(time.Until(asked.Add(59 * time.Second)))
		if err := yes(typed); !errors.Is(err, approval.ErrEarly) || !strings.Contains(err.Error(), "counts in 1s") {
			t.Errorf("at once: %v", err)
		}
		if d := show(); d.Change.State != change.AwaitingApproval || d.Approval.Decision != approval.Pending {
			t.Fatalf("it is %s, %s", d.Change.State, d.Approval.Decision)
		}
		time.Sleep(time.Second)
		if err := yes(typed); err != nil {
			t.Fatal(err)
		}
		if d := show(); d.Approval.Decision != approval.Approved {
			t.Errorf("it is %s", d.Approval.Decision)
		}
	})
}

// TestACardWarnsOfWhatAChangeOfTheHostBrings holds SM-072, SM-083, SM-085 and SM-086.
func TestACardWarnsOfWhatAChangeOfTheHostBrings(t *testing.T) {
	const (
		scope    = "Host-level changes run with full credential scope and can access data across all groups. Review carefully."
		lossy    = "rollback may be lossy if migration is non-reversible"
		combined = "This change modifies host code and per-group runner/skills code. Host changes will apply to every group on next restart. " +
			"Runner/skills changes will only apply to the originating group. Other existing groups will continue running their old runner against the new " +
			"host — this can break them if the host change requires a matching runner update. If that happens, you can run another dev-agent cycle from " +
			"each affected group to refresh them."
		page, prompt, migration = "docs/more.md", "template/runner/prompts/system.md", "migrations/00099_more.sql"
	)
	for name, test := range map[string]struct {
		files  []string
		class  string
		banner []string
	}{
		"a group":                         {[]string{prompt}, "group", nil},
		"the host":                        {[]string{page}, "host", []string{scope}},
		"both":                            {[]string{page, prompt}, "combined", []string{scope, combined}},
		"the host's database":             {[]string{migration}, "host", []string{scope, lossy}},
		"a group and the host's database": {[]string{prompt, migration}, "combined", []string{scope, combined, lossy}},
	} {
		t.Run(name, func(t *testing.T) {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				drivetest.Keep(h)
				_, show := proposed(h, test.files...)
				if card := show().Proposal.Card; card.Class != test.class || !slices.Equal(card.Banner, test.banner) {
					t.Errorf("it is %q, with %q", card.Class, card.Banner)
				}
			})
		})
	}
}

// TestAChangeOfOneGroupIsApprovedByAPlainYesAtOnce holds SM-080: the time to think is for the host alone.
func TestAChangeOfOneGroupIsApprovedByAPlainYesAtOnce(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		yes, show := proposed(h, "template/runner/prompts/system.md")
		card := show().Proposal.Card
		if card.Class != "group" || card.Typed != "" || len(card.Banner) != 0 {
			t.Errorf("its card is %q, %q, %q", card.Class, card.Typed, card.Banner)
		}
		if err := yes(approve.Words{Via: "chat", Marked: true}); err != nil {
			t.Fatal(err)
		}
		if d := show(); d.Approval.Decision != approval.Approved {
			t.Errorf("it is %s", d.Approval.Decision)
		}
	})
}

// people is a home of these, as a transaction finds them.
type people struct {
	store.Tx
	all []person.Known
}

func (p people) People(context.Context) ([]person.Known, error) { return p.all, nil }

// TestNobodyIsAskedWhoMayNotApprove holds SM-090: a home without an owner has nobody who may.
func TestNobodyIsAskedWhoMayNotApprove(t *testing.T) {
	ada := person.Known{Person: person.Person{ID: "psn-0000ada0"}, Accounts: []person.Account{{Identity: person.AtTerminal(1)}}, Held: []right.Held{{Role: right.Owner}}}
	for _, class := range []right.Class{"group", "host", "combined", ""} {
		a := approve.New(approve.Parts{Rules: drivetest.Rules{}})
		if _, err := a.Need(t.Context(), people{}, request.Request{}, class); err == nil || !strings.Contains(err.Error(), "nobody can approve this change: the home has no owner") {
			t.Errorf("%q: %v", class, err)
		}
		if n, err := a.Need(t.Context(), people{all: []person.Known{ada}}, request.Request{}, class); err != nil || len(n.Ask) != 1 || n.Ask[0] != "psn-0000ada0" {
			t.Errorf("%q: %+v, %v", class, n, err)
		}
	}
}

func (p people) Whose(_ context.Context, i person.Identity) (person.Person, bool, error) {
	for _, k := range p.all {
		if slices.ContainsFunc(k.Accounts, func(a person.Account) bool { return a.Identity == i }) {
			return k.Person, true, nil
		}
	}
	return person.Person{}, false, nil
}

// TestWhoSpokeWhenAnAgentAskedDoesNotApproveWhereThePolicyWantsAnother holds SM-912: by naming a bystander's message an agent would have who
// wished a change approve it.
func TestWhoSpokeWhenAnAgentAskedDoesNotApproveWhereThePolicyWantsAnother(t *testing.T) {
	known := func(name string, held right.Role) person.Known {
		return person.Known{
			Person: person.Person{ID: id.Person("psn-" + name)}, Held: []right.Held{{Role: held}},
			Accounts: []person.Account{{Identity: person.Identity{Platform: "slack", Account: name}, Direct: "cnv-" + id.Conversation(name)}},
		}
	}
	home := people{all: []person.Known{known("ann", right.Owner), known("gil", right.GlobalAdmin), known("eve", right.GlobalAdmin)}}
	for name, test := range map[string]struct {
		heard []string
		rules right.Rules
		want  []id.Person
	}{
		"nobody":                    {nil, right.Rules{NoSelf: true}, []id.Person{"psn-gil", "psn-eve", "psn-ann"}},
		"one who may":               {[]string{"slack:gil"}, right.Rules{NoSelf: true}, []id.Person{"psn-eve", "psn-ann"}},
		"strangers and handles":     {[]string{"slack:may", "irc:~gil", "slack:"}, right.Rules{NoSelf: true}, []id.Person{"psn-gil", "psn-eve", "psn-ann"}},
		"and nobody has to be else": {[]string{"slack:gil"}, right.Rules{}, []id.Person{"psn-gil", "psn-eve", "psn-ann"}},
	} {
		a := approve.New(approve.Parts{Rules: drivetest.Rules{Judging: grounds.Judging{Approvals: test.rules}}})
		n, err := a.Need(t.Context(), home, request.Request{Kind: request.Swap, Group: "echo", Heard: test.heard}, right.Group)
		if err != nil || !slices.Equal(n.May, test.want) {
			t.Errorf("%s spoke: %q may, not %q: %v", name, n.May, test.want, err)
		}
	}
}

// TestAPolicyThatNobodyCanFulfilIsToldBeforeAnyAgentWorks holds SM-090 and SM-912: what to change in it is said with it.
func TestAPolicyThatNobodyCanFulfilIsToldBeforeAnyAgentWorks(t *testing.T) {
	me := person.AtTerminal(os.Getuid()).String()
	for want, rules := range map[string]right.Rules{
		"policy.yaml has nobody approve what they asked for (approvals.self: refuse), and the owner of the home asked for this, or spoke when it was asked for":       {NoSelf: true, People: 1},
		"policy.yaml wants 2 people to approve it (approvals.people: 2), and one of those who may can be reached. With approvals.people: 1 one person may approve it": {People: 2},
		"nobody knows who asked for it, so policy.yaml wants two people (approvals.self: refuse)":                                                                     {NoSelf: true},
	} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			a, _ := h.Assist()
			h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Approvals: rules}}
			if rules.People == 1 {
				a.Spoke = []string{me}
			}
			c, _ := a.Begin()
			_, err := a.Wish(c, "chg-aaaaaaaa", "Change it")
			if p := problem.Of(err); p.Kind != problem.Refused || !strings.Contains(p.Text, want) || p.Next != "${EDITOR:-vi} "+h.Repo+"/policy.yaml" {
				t.Errorf("%+v: %v", rules, err)
			}
			if _, err := c.LastSwap(gittest.Context(t), "echo"); problem.KindOf(err) != problem.NotFound {
				t.Errorf("it was begun all the same: %v", err)
			}
		})
	}
}

// TestAYesIsTakenByThePolicyOfThatMoment holds SM-912: a card is no way around what the policy says when the yes comes, and none is dead.
func TestAYesIsTakenByThePolicyOfThatMoment(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		laws := &drivetest.Laws{}
		say := func(r right.Rules) { laws.Rules.Store(&drivetest.Rules{Judging: grounds.Judging{Approvals: r}}) }
		say(right.Rules{CoolDown: time.Hour})
		h.Parts.Rules = laws
		drivetest.Keep(h)
		yes, show := proposed(h, "policy.yaml")
		p := show().Proposal
		if _, _, ask := p.Tell("echo"); !strings.Contains(ask, "Read it first: a yes counts once this card is 1h0m0s old.") {
			t.Errorf("it is asked: %q", ask)
		}
		if told := strings.Join(p.Card.Reach, "\n"); strings.Count(told, "policy.yaml") != 1 || !strings.Contains(told, "the rules change (this change was judged by the rules before it)") {
			t.Errorf("that the rules change is told so: %q", told)
		}
		typed := approve.Words{Via: "chat", Marked: true, Typed: "CONFIRM HOST"}
		time.Sleep(time.Until(show().Approval.Asked.Add(10 * time.Minute)))
		if err := yes(typed); !errors.Is(err, approval.ErrEarly) || !strings.Contains(err.Error(), "counts in 50m0s") {
			t.Errorf("after ten minutes: %v", err)
		}
		time.Sleep(50 * time.Minute)
		say(right.Rules{People: 2, CoolDown: time.Hour})
		if err := yes(typed); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "approvals.people: 2") {
			t.Errorf("where two are wanted: %v", err)
		}
		laws.Rules.Store(&drivetest.Rules{Undecided: problem.Case(config.ErrUnloaded, "vi policy.yaml", "policy.yaml:3:1: oops")})
		if err := yes(typed); !errors.Is(err, config.ErrUnloaded) || !strings.Contains(err.Error(), "policy.yaml:3:1") || problem.Of(err).Next != "vi policy.yaml" {
			t.Errorf("by a policy that does not load: %v", err)
		}
		if d := show(); d.Change.State != change.AwaitingApproval || d.Approval.Decision != approval.Pending {
			t.Fatalf("it is %s, %s", d.Change.State, d.Approval.Decision)
		}
		say(right.Rules{CoolDown: time.Hour})
		if err := yes(typed); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWhoMayAnswerACardReadsItAndWhatNobodyThereCanReadWholeIsTheOwnersToo holds SM-080 and SM-909.
func TestWhoMayAnswerACardReadsItAndWhatNobodyThereCanReadWholeIsTheOwnersToo(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		_, show, c := proposedWith(h, "template/runner/prompts/system.md")
		a := &drivetest.Assistants{Home: h}
		ada, bob := a.Admin("ada", "echo"), a.Admin("bob", "other")
		d := show()
		for _, ref := range []string{string(d.Change.ID), string(d.Approval.ID)} {
			for who, want := range map[*audit.Actor]string{&ada: "echo", &bob: ""} {
				if of, err := c.AskedOf(gittest.Context(t), ref, *who); of != want || err != nil {
					t.Errorf("%s is asked about %s of %q, %v", who.Name, ref, of, err)
				}
			}
		}
		for _, ref := range []string{"chg-nothing0", "apr-nothing0", "qst-nothing0"} {
			if of, err := c.AskedOf(gittest.Context(t), ref, ada); of != "" || err != nil {
				t.Errorf("%s is of %q, %v", ref, of, err)
			}
		}
		if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, ada, approve.Words{Unsigned: true}); !errors.Is(err, person.ErrNotOwner) {
			t.Errorf("an admin has it land unsigned: %v", err)
		}

		asks := func(longer bool, class right.Class) (who []id.Person) {
			h.Tx(func(ctx context.Context, tx store.Tx) (err error) {
				p := *d.Proposal
				p.Card.Class, p.Card.Spoken = string(class), &proposal.Spoken{Longer: longer}
				if err = tx.NoteDirect(ctx, person.Identity{Platform: "slack", Account: "U-ada"}, direct(ctx, tx)); err != nil {
					return err
				}
				who, err = c.Asks(ctx, tx, d.Change, p)
				return err
			})
			return who
		}
		if who := asks(false, right.Group); !slices.Equal(who, []id.Person{ada.Person}) {
			t.Errorf("what is shown whole goes to %q", who)
		}
		if who := asks(true, right.Group); !slices.Equal(who, []id.Person{ada.Person, h.Owner.ID}) {
			t.Errorf("what is not goes to %q", who)
		}
		h.Tx(func(ctx context.Context, tx store.Tx) error {
			return tx.Link(ctx, person.AtTerminal(4711), ada.Person, "ada")
		})
		if who := asks(true, right.Group); !slices.Equal(who, []id.Person{ada.Person}) {
			t.Errorf("with a command line it goes to %q", who)
		}
		if who := asks(true, right.Host); !slices.Equal(who, []id.Person{h.Owner.ID}) {
			t.Errorf("a change of the host goes to %q", who)
		}
	})
}

// direct is a conversation in which somebody is alone with the assistant.
func direct(ctx context.Context, tx store.Tx) id.Conversation {
	where, _ := tx.PutConversation(ctx, conversation.Conversation{ID: id.NewConversation(), Platform: "slack", Address: "ada", Kind: conversation.Direct, Name: "ada", Created: time.Now()})
	return where.ID
}
