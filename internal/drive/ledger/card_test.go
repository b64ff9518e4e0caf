package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/mount"
	"sallyport/internal/rule/right"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// swap is a change of what echo runs, asked for in a chat.
func swap(in conversation.Chat) func(*change.Row) {
	return func(c *change.Row) {
		c.Request.Kind, c.Request.Group, c.Request.Chat, c.Request.Dev = request.Swap, "echo", in.ID, "dev"
	}
}

// offer is what a change proposes.
func offer(row change.Row, number int) proposal.Proposal {
	oid := func(n int) git.OID { return git.OID(fmt.Sprintf("%040x", n)) }
	p := proposal.Proposal{Change: row.ID, Number: number, Base: oid(2), Tree: oid(4), Commit: oid(5), Policy: "p", At: ledger.Now(), Card: proposal.Card{Title: "mend it", Kind: "swap"}}
	p.Digest = p.Sum()
	return p
}

// asks brings each card to somebody.
func (b *book) asks(who ...id.Person) {
	b.Origin.Asks = func(context.Context, store.Tx, change.Row, proposal.Proposal) ([]id.Person, error) { return who, nil }
}

// agreed opens an approval and has people say yes to it.
func (b *book) agreed(row change.Row, by ...audit.Actor) {
	b.t.Helper()
	b.do(func(tx store.Tx) error {
		p := offer(row, 1)
		var all []id.Person
		for _, a := range by {
			all = append(all, a.Person)
		}
		p.Card.People = len(by)
		p.Digest = p.Sum()
		asked, err := b.Origin.OpenApproval(b.t.Context(), tx, row, p)
		for _, a := range by {
			err = errors.Join(err, approval.Record(b.t.Context(), tx, approval.Saying{ID: asked.ID, Read: p.Digest, Current: p, Need: right.Only(all...), By: a, At: ledger.Now()}))
		}
		return err
	})
}

// TestNoWordOnACardTakesOutWhatStandsBehindIt: an agent chooses its words, the names of files and the hosts that it asks for. None of them
// makes a secret of what the host says between them, nor of another.
func TestNoWordOnACardTakesOutWhatStandsBehindIt(t *testing.T) {
	b := open(t)
	here := b.talks("irc", "#echo", "echo")
	ada, alone := b.knows("ada", "slack")
	row := b.add(change.Submitted, swap(here))
	b.asks(ada.Person)
	p := offer(row, 1)
	p.Card.Wish = "greet people by name, with ghp_0123456789abcdefghijABCDEFGHIJ012345"
	p.Card.AgentSays = "Done. Try curl -s -u \"admin:"
	p.Card.FilesTotal, p.Card.Files = 1, []proposal.FileLine{{Path: "deploy-4f9aK2xQ7Zt1", Status: "added", Added: 3, Note: "new executable"}}
	p.Card.Reach = []string{"it gains a hook that runs outside of its sandbox"}
	p.Card.Checks = []proposal.CheckResult{{Command: "make test", Why: "exit status 1"}}
	p.Card.Network = []string{"sallyport refused a request to x\" y"}
	p.Digest = p.Sum()
	b.do(func(tx store.Tx) error {
		_, err := b.Origin.OpenApproval(t.Context(), tx, row, p)
		return err
	})
	for _, shown := range []string{b.outs(here.ID)[0].Text, b.outs(alone.ID)[0].Text} {
		for _, want := range []string{"added deploy-4f9aK2xQ7Zt1 (", "new executable", "outside of its sandbox", "check FAILED: make test", "in its own words"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%q is not shown:\n%s", want, shown)
			}
		}
		if strings.Contains(shown, "ghp_") {
			t.Errorf("a secret is shown:\n%s", shown)
		}
	}
}

func TestAnApprovalIsShownWhereItWasAskedForAndToWhoIsAskedAlone(t *testing.T) {
	b := open(t)
	here := b.talks("irc", "#echo", "echo")
	ada, alone := b.knows("ada", "slack")
	_, bystander := b.knows("bea", "slack")
	row := b.add(change.Submitted, swap(here))
	b.asks(ada.Person)
	open := func(row change.Row, number int) (a approval.Approval) {
		t.Helper()
		b.do(func(tx store.Tx) (err error) {
			a, err = b.Origin.OpenApproval(t.Context(), tx, row, offer(row, number))
			return err
		})
		return a
	}
	asked := open(row, 1)
	first, there := b.outs(here.ID), b.outs(alone.ID)
	if len(first) != 2 || first[0].Card != message.CardDiff || first[1].Card != message.CardApproval || first[1].Question != asked.Question || first[1].Change != row.ID {
		t.Fatalf("shown is %+v", first)
	}
	if len(there) != 2 || there[0].Text != "The group echo asks for this in “echo” on irc.\n"+first[0].Text || there[1].Text != first[1].Text || there[1].Question != asked.Question {
		t.Errorf("who is asked sees %+v", there)
	}
	if n := len(b.outs(bystander.ID)); n != 0 {
		t.Errorf("%d messages went to who is not asked", n)
	}

	// The first of a promotion is answered by who wanted it; one that is made anew is asked.
	promotes := b.add(change.Submitted, swap(here), func(c *change.Row) {
		c.Request.Promotes, c.Request.Approve, c.Cancel = row.ID, request.Yes, true
	})
	open(promotes, 1)
	if n := len(b.outs(here.ID)); n != 2 {
		t.Errorf("%d messages: a promotion that was wanted is asked again", n)
	}
	open(promotes, 2)
	if n := len(b.outs(here.ID)); n != 4 {
		t.Errorf("%d messages: a promotion that was made anew is not asked", n)
	}

	// Nobody alone is asked where the home says nobody; nor anybody of what was asked for in no conversation.
	nobody := b.add(change.Submitted, swap(here), func(c *change.Row) { c.Cancel = true })
	b.Origin.Asks = nil
	open(nobody, 1)
	b.Origin.Asks = func(context.Context, store.Tx, change.Row, proposal.Proposal) ([]id.Person, error) {
		return nil, errors.New("no rules")
	}
	for _, chat := range []id.Chat{"", "cht-gone0000"} {
		open(b.add(change.Submitted, func(c *change.Row) { c.Request.Chat = chat }), 1)
	}
	if n, m := len(b.outs(here.ID)), len(b.outs(alone.ID)); n != 6 || m != 4 {
		t.Errorf("%d messages here, and %d there", n, m)
	}

	// What cannot be asked is no approval.
	err := b.DB.InTx(t.Context(), func(tx store.Tx) error {
		_, err := b.Origin.OpenApproval(t.Context(), tx, row, offer(row, 2))
		return err
	})
	if err == nil || err.Error() != "no rules" || len(b.outs(here.ID)) != 6 {
		t.Errorf("%v, %d messages", err, len(b.outs(here.ID)))
	}
}

// What a card says reaches the store and the conversations without a secret.
func TestACardIsKeptAndShownWithoutSecrets(t *testing.T) {
	b := open(t)
	here := b.talks("irc", "#echo", "echo")
	row := b.add(change.Submitted, swap(here))
	var kept proposal.Proposal
	b.do(func(tx store.Tx) error {
		p := offer(row, 1)
		p.Card.Note = "it holds " + planted
		_, err := b.Origin.OpenApproval(t.Context(), tx, row, p)
		var err2 error
		kept, _, err2 = tx.Proposal(t.Context(), row.ID)
		return errors.Join(err, err2)
	})
	shown := b.outs(here.ID)
	if !strings.HasPrefix(kept.Card.Note, "it holds [secret") || len(shown) != 2 || strings.Contains(shown[0].Text+shown[1].Text, planted) {
		t.Errorf("kept is %q, and shown %+v", kept.Card.Note, shown)
	}
}

// Who is alone with the assistant in the conversation itself, or sits at the terminal that it is, reads the card there once.
func TestNobodyIsShownACardTwice(t *testing.T) {
	b := open(t)
	b.do(func(tx store.Tx) error {
		return errors.Join(tx.AddPerson(t.Context(), person.Person{ID: "psn-tom", Name: "tom"}), tx.Link(t.Context(), person.AtTerminal(1000), "psn-tom", "tom"))
	})
	ada, alone := b.knows("ada", "slack")
	shy := audit.Actor{Person: "psn-shy"} // reached nowhere
	b.do(func(tx store.Tx) error {
		return errors.Join(tx.AddPerson(t.Context(), person.Person{ID: shy.Person, Name: "shy"}), tx.Link(t.Context(), person.Identity{Platform: "slack", Account: "U-shy"}, shy.Person, "shy"))
	})
	for name, c := range map[string]struct {
		in   func() conversation.Chat
		who  id.Person
		also int // messages in other places
	}{
		"alone with the assistant there": {func() conversation.Chat {
			b.do(func(tx store.Tx) (err error) {
				alone, err = tx.PutChat(t.Context(), conversation.Chat{ID: id.NewChat(), Group: "echo", Conversation: alone.Conversation, Created: ledger.Now()})
				return err
			})
			return alone
		}, ada.Person, 0},
		"elsewhere on the platform":       {func() conversation.Chat { return b.talks("slack", "#echo", "echo") }, ada.Person, 2},
		"at that terminal":                {func() conversation.Chat { return b.talks("terminal", "1000/echo", "echo") }, "psn-tom", 0},
		"at another terminal":             {func() conversation.Chat { return b.talks("terminal", "10001/echo", "echo") }, "psn-tom", 2},
		"at a place that looks like it":   {func() conversation.Chat { return b.talks("irc", "1000/echo", "echo") }, "psn-tom", 2},
		"somewhere else, at no terminal":  {func() conversation.Chat { return b.talks("terminal", "U-ada/echo", "echo") }, ada.Person, 2},
		"nowhere, and cannot be reached":  {func() conversation.Chat { return b.talks("irc", "#other", "echo") }, shy.Person, 0},
		"a person whom nobody knows here": {func() conversation.Chat { return b.talks("irc", "#third", "echo") }, "psn-gone", 0},
	} {
		here := c.in()
		b.asks(c.who)
		row := b.add(change.Submitted, swap(here), func(r *change.Row) { r.Cancel = true })
		count := func() (n int) {
			var chats []conversation.Chat
			b.do(func(tx store.Tx) (err error) { chats, err = tx.Chats(t.Context(), ""); return err })
			for _, chat := range chats {
				for _, o := range b.outs(chat.ID) {
					if o.Change == row.ID {
						n++
					}
				}
			}
			return n
		}
		b.do(func(tx store.Tx) error {
			_, err := b.Origin.OpenApproval(t.Context(), tx, row, offer(row, 1))
			return err
		})
		if n := count(); n != 2+c.also {
			t.Errorf("%s: %d messages, and not %d", name, n, 2+c.also)
		}
	}
}

// who is entitled to end a trial is shown it: who approved it, and who asked for it.
func TestATrialIsShownToWhoApprovedItAndToWhoAskedForIt(t *testing.T) {
	b := open(t)
	here := b.talks("irc", "#echo", "echo")
	ada, adas := b.knows("ada", "slack")
	bea, beas := b.knows("bea", "slack")
	_, others := b.knows("gil", "slack")
	row := b.add(change.InTrial, func(c *change.Row) {
		c.Request.Kind, c.Request.Chat, c.Request.Group, c.Request.By = request.Group, here.ID, "echo", bea
	})
	row.Request.By = bea
	b.asks()
	b.agreed(row, ada, bea)
	before := len(b.outs(here.ID))
	tried := trial.Begin(row.ID, "lnd-00000001", trust.Target{Restart: "true"}, time.Minute, deadman.Moment{Wall: ledger.Now(), Boot: "b"})
	show := func(row change.Row) {
		t.Helper()
		b.do(func(tx store.Tx) error { return b.Origin.ShowTrial(t.Context(), tx, row, tried) })
	}
	show(row)
	if all := b.outs(here.ID)[before:]; len(all) != 1 || all[0].Card != message.CardTrial || all[0].Lane != message.Talk || all[0].Text != tried.Question() {
		t.Errorf("shown is %+v", all)
	}
	for name, chat := range map[string]id.Chat{"who approved it": adas.ID, "who asked for it": beas.ID} {
		if all := b.outs(chat); len(all) != 1 || all[0].Lane != message.Notice || all[0].Card != message.CardTrial || all[0].Text != "This is about the group echo, in “echo” on irc.\n"+tried.Question() {
			t.Errorf("%s sees %+v", name, all)
		}
	}
	row.Request.Chat = ""
	show(row)
	if n, m, o := len(b.outs(here.ID)), len(b.outs(adas.ID)), len(b.outs(others.ID)); n != before+1 || m != 1 || o != 0 {
		t.Errorf("%d, %d and %d messages", n, m, o)
	}
}

// What was kept of what a group runs is asked about once, of who approved it, and only where a runner or a skill has changed (SM-150, SM-154).
func TestWhoApprovedWhatAGroupRunsIsAskedWhetherNewGroupsHaveIt(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		edit func(*change.Row)
		asks bool
	}{
		"a runner":                {"groups/echo/runner/runner.yaml", nil, true},
		"what the group says":     {"groups/echo/AGENTS.md", nil, false},
		"the runner of another":   {"groups/other/runner/runner.yaml", nil, false},
		"a refresh of the host's": {"groups/echo/runner/runner.yaml", func(c *change.Row) { c.Request.Refresh = true }, false},
		"where there is no chat":  {"groups/echo/runner/runner.yaml", func(c *change.Row) { c.Request.Chat = "cht-gone0000" }, false},
		"a person's own edit":     {"groups/echo/runner/runner.yaml", func(c *change.Row) { c.Request.Kind = request.Edit }, false},
	} {
		b := open(t)
		here := b.talks("irc", "#echo", "echo")
		ada, alone := b.knows("ada", "slack")
		row := b.add(change.InTrial, swap(here))
		if c.edit != nil {
			c.edit(&row)
		}
		b.agreed(row, ada)
		before := len(b.outs(here.ID))
		kept := landing.Landing{NewCommit: "c1", NewTree: "t1", Edits: []git.Edit{{Path: c.path}}}
		b.do(func(tx store.Tx) error {
			return b.KeepLanding(t.Context(), tx, &row, kept, ledger.Move{Event: change.Kept, By: audit.Host})
		})
		var asked []message.Out
		for _, o := range append(b.outs(here.ID)[before:], b.outs(alone.ID)...) {
			if o.Card == message.CardPromote {
				asked = append(asked, o)
			}
		}
		if want := map[bool]int{true: 2}[c.asks]; len(asked) != want {
			t.Fatalf("%s: %d cards, not %d", name, len(asked), want)
		}
		if !c.asks {
			continue
		}
		b.do(func(tx store.Tx) error {
			q, err := tx.Question(t.Context(), asked[0].Question)
			if asked[1].Question != q.ID || q.Kind != question.Promote || q.Words || len(q.Options) != 2 || q.Options[0].Key != ledger.ApplyToTemplate || !strings.Contains(q.Card.Title, "only to the echo group") {
				t.Errorf("%s: asked is %+v", name, q)
			}
			return err
		})
	}
}

// asksMount settles how folders are shown.
func (b *book) asksMount(row change.Row, all ...group.NewWish) error {
	return b.SettleMounts(b.t.Context(), row, all)
}

func wish(of group.Folder, path string, write bool) group.NewWish {
	return group.NewWish{Wish: mount.Wish{Path: path, Write: write}, Of: of}
}

// What a person says of a folder holds for what the change declares, and for no other folder (CH-026).
func TestAPersonSaysHowAFolderIsShown(t *testing.T) {
	b := open(t)
	here := b.talks("irc", "#echo", "echo")
	ada, _ := b.knows("ada", "slack")
	var about []proposal.Proposal
	b.Origin.Asks = func(_ context.Context, _ store.Tx, _ change.Row, p proposal.Proposal) ([]id.Person, error) {
		about = append(about, p)
		return nil, nil
	}
	row := b.add(change.Working, swap(here))
	waiting := func() (all []question.Question) {
		t.Helper()
		b.do(func(tx store.Tx) (err error) { all, err = tx.OpenQuestions(t.Context(), row.ID.Subject()); return err })
		return all
	}
	say := func(q question.Question, option string) {
		t.Helper()
		b.do(func(tx store.Tx) error {
			_, err := question.Say(t.Context(), tx, question.Saying{ID: q.ID, Need: right.Only(ada.Person), By: ada, Option: option, At: ledger.Now()})
			return err
		})
	}
	box, other := wish("echo", "/srv/box", true), wish("other", "/srv/box", false)
	for range 2 { // once, however often it is wished for
		if err := b.asksMount(row, box); !errors.Is(err, ledger.ErrAsked) {
			t.Errorf("it is shown without a word: %v", err)
		}
	}
	all, cards := waiting(), b.outs(here.ID)
	if len(all) != 1 || all[0].Kind != question.Mount || all[0].Words || len(all[0].Options) != 2 || len(cards) != 1 || cards[0].Card != message.CardMount || cards[0].Question != all[0].ID || !strings.Contains(cards[0].Text, "the agent of echo this folder of your machine: /srv/box.") {
		t.Fatalf("asked is %+v, shown as %+v", all, cards)
	}
	say(all[0], "read-write")
	if err := b.asksMount(row, box); err != nil {
		t.Errorf("as it was said: %v", err)
	}
	err := b.asksMount(row, wish("echo", "/srv/box", false))
	if want := "/srv/box is to be read-write: write readonly: false in its entry in mounts of runner.yaml, commit, and call request_swap again."; problem.KindOf(err) != problem.Conflict || err.Error() != want {
		t.Errorf("otherwise than it was said: %v", err)
	}

	// Another group's folder is asked of the owner, whatever the change is besides.
	if err := b.asksMount(row, box, other); !errors.Is(err, ledger.ErrAsked) {
		t.Errorf("it is shown to another group without a word: %v", err)
	}
	if all = waiting(); len(all) != 1 || all[0].Kind != question.MountOther {
		t.Fatalf("asked is %+v", all)
	}
	say(all[0], "read-only")
	if err := b.asksMount(row, box, other); err != nil {
		t.Errorf("as it was said: %v", err)
	}
	err = b.asksMount(row, wish("echo", "/srv/box", false), wish("other", "/srv/box", true))
	if want := "/srv/box is to be read-only: leave readonly out of its entry in mounts of runner.yaml of the group other, commit, and call request_swap again."; err == nil || !strings.HasSuffix(err.Error(), " again. "+want) {
		t.Errorf("two that are otherwise: %v", err)
	}

	// Who is asked depends on what the change offers, once it does; what another group is shown is always the owner's to say.
	b.do(func(tx store.Tx) error { return tx.AddProposal(t.Context(), offer(row, 1)) })
	if err := errors.Join(b.asksMount(row, wish("echo", "/srv/two", true)), b.asksMount(row, wish("other", "/srv/two", true))); !errors.Is(err, ledger.ErrAsked) {
		t.Error(err)
	}
	var classes []string
	for _, p := range about {
		classes = append(classes, fmt.Sprint(p.Number, p.Card.Class))
	}
	if want := []string{"0" + string(right.Group), "0" + string(right.Host), "1", "0" + string(right.Host)}; !slices.Equal(classes, want) {
		t.Errorf("asked of %q, not %q", classes, want)
	}

	// What is shown no more is asked no more; what is still shown is.
	if err := b.asksMount(row, wish("echo", "/srv/two", true)); !errors.Is(err, ledger.ErrAsked) || len(waiting()) != 2 {
		t.Errorf("%v, %d wait", err, len(waiting()))
	}
	if err := b.asksMount(row, wish("echo", "/srv/box", false)); problem.KindOf(err) != problem.Conflict || len(waiting()) != 2 {
		t.Errorf("%v, %d wait", err, len(waiting()))
	}
	if err := b.asksMount(row); err != nil || len(waiting()) != 0 {
		t.Errorf("%v, and asked is %+v", err, waiting())
	}

	// Where nobody can be asked nothing is written, and who cannot be asked is an error.
	row.Request.Chat = "cht-gone0000"
	if err := b.asksMount(row, wish("echo", "/srv/three", false)); err != nil {
		t.Errorf("reading, where nobody can be asked: %v", err)
	}
	if err := b.asksMount(row, wish("echo", "/srv/three", true)); problem.KindOf(err) != problem.Conflict {
		t.Errorf("writing, where nobody can be asked: %v", err)
	}
	row.Request.Chat = here.ID
	b.Origin.Asks = func(context.Context, store.Tx, change.Row, proposal.Proposal) ([]id.Person, error) {
		return nil, errors.New("no rules")
	}
	if err := b.asksMount(row, wish("echo", "/srv/four", true)); err == nil || err.Error() != "no rules" || len(waiting()) != 0 {
		t.Errorf("%v, and asked is %+v", err, waiting())
	}
}

// What is asked about a folder ends with its change, and with nothing else.
func TestWhatIsAskedAboutAFolderEndsWithItsChange(t *testing.T) {
	for name, c := range map[string]struct {
		move  ledger.Move
		kind  request.Kind
		waits int
	}{
		"cancelled":       {ledger.Move{Event: change.Cancel, By: alice}, request.Swap, 0},
		"offered":         {ledger.Move{Event: change.Ended, By: alice}, request.Swap, 1},
		"of another kind": {ledger.Move{Event: change.Cancel, By: alice}, request.Edit, 1},
	} {
		b := open(t)
		row := b.add(change.Working, swap(b.talks("irc", "#echo", "echo")))
		if err := b.asksMount(row, wish("echo", "/srv/box", true)); !errors.Is(err, ledger.ErrAsked) {
			t.Fatal(err)
		}
		row.Request.Kind = c.kind
		b.do(func(tx store.Tx) error {
			if err := b.Move(t.Context(), tx, &row, c.move); err != nil {
				return err
			}
			all, err := tx.OpenQuestions(t.Context(), row.ID.Subject())
			if len(all) != c.waits {
				t.Errorf("%s: %d wait, not %d", name, len(all), c.waits)
			}
			return err
		})
	}
}

// What became of a swap is told to the people who asked for it, to their group's agent, and, if it did not go well, wakes the agent that made it (SM-110).
func TestTheAgentsOfASwapHearHowItEnded(t *testing.T) {
	called := alice
	called.Name = planted
	for name, c := range map[string]struct {
		state  change.State
		move   ledger.Move
		people int    // messages to them
		group  string // what its agent hears
		wakes  bool   // the agent that made it
		kind   request.Kind
	}{
		"failed":              {change.Working, ledger.Move{Event: change.Fail, By: alice, Reason: "no disk"}, 1, "% has failed: no disk", true, request.Swap},
		"refused":             {change.AwaitingApproval, ledger.Move{Event: change.Refused, By: alice, Reason: "no"}, 1, "alice refused %: no; nothing of it landed", true, request.Swap},
		"cancelled":           {change.Working, ledger.Move{Event: change.Cancel, By: alice}, 1, "alice cancelled %; nothing of it landed", false, request.Swap},
		"by a secret":         {change.Working, ledger.Move{Event: change.Cancel, By: called}, 1, "[secret: github-token] cancelled %; nothing of it landed", false, request.Swap},
		"landed":              {change.Landing, ledger.Move{Event: change.Landed, By: alice}, 1, "% is landed and kept", false, request.Swap},
		"held back":           {change.Landing, ledger.Move{Event: change.Held, By: alice, Reason: "it moved"}, 0, "% was not landed, and waits for a person again: it moved", true, request.Swap},
		"taken back half-way": {change.Landing, ledger.Move{Event: change.Undone, By: alice, Reason: "it broke"}, 0, "% was not landed, and waits for a person again: it broke", true, request.Swap},
		"asked again":         {change.Landing, ledger.Move{Event: change.Asked, By: alice, Reason: "it moved"}, 0, "", false, request.Swap},
		"an edit, held back":  {change.Landing, ledger.Move{Event: change.Held, By: alice, Reason: "it moved"}, 0, "", false, request.Edit},
		"to be made anew":     {change.AwaitingApproval, ledger.Move{Event: change.Reworked, By: alice, Reason: "shorter"}, 1, "alice wants % changed before it lands: shorter; dev goes on with it, and proposes it again", false, request.Swap},
		"going on":            {change.Paused, ledger.Move{Event: change.Resume, By: alice, Reason: "go"}, 0, "", false, request.Swap},
		"with nothing":        {change.Working, ledger.Move{Event: change.Unchanged, By: alice, Outcome: change.NothingToDo, Next: "sallyport change show"}, 1, "% has come to its end with nothing to land; next: sallyport change show", false, request.Swap},
		"stuck":               {change.InTrial, ledger.Move{Event: change.Stuck, By: alice, Reason: "no way", Next: "sallyport doctor"}, 1, "% needs you: no way; next: sallyport doctor", false, request.Swap},
		"taken back":          {change.InTrial, ledger.Move{Event: change.TakenBack, By: alice, Reason: "it was over"}, 1, "it was over", false, request.Swap},
	} {
		for _, began := range []bool{true, false} {
			b := open(t)
			here := b.talks("irc", "#echo", "echo")
			row := b.add(c.state, swap(here), func(r *change.Row) { r.Request.Kind = c.kind })
			if began {
				b.do(func(tx store.Tx) error {
					return tx.PutSession(t.Context(), session.Session{ID: "sed-aaaaa", Change: row.ID, Attempt: 1, Agent: "command", Started: ledger.Now()})
				})
			}
			b.do(func(tx store.Tx) error { return b.Move(t.Context(), tx, &row, c.move) })
			heard := map[conversation.Kind][]message.In{}
			b.do(func(tx store.Tx) error {
				all, err := tx.Ins(t.Context(), message.Filter{})
				for _, in := range all {
					chat, err := tx.Chat(t.Context(), in.Chat)
					where, err2 := tx.Conversation(t.Context(), chat.Conversation)
					if err := errors.Join(err, err2); err != nil {
						return err
					}
					key := conversation.Kind(where.Platform)
					heard[key] = append(heard[key], in)
				}
				return err
			})
			group, dev, people := heard["irc"], heard[conversation.Dev], b.outs(here.ID)
			want := strings.ReplaceAll(c.group, "%", string(row.ID))
			if (len(group) == 1) != (want != "") || want != "" && (group[0].Text != want || group[0].Trigger) {
				t.Errorf("%s: the group's agent hears %+v, not %q", name, group, want)
			}
			if woken := c.wakes && began; (len(dev) == 1) != woken || woken && (dev[0].Text != want || !dev[0].Trigger) {
				t.Errorf("%s, begun %t: the agent that made it hears %+v", name, began, dev)
			}
			if len(people) != c.people || c.people == 1 && people[0].Text != want {
				t.Errorf("%s: people are told %+v", name, people)
			}
		}
	}
}

// What became of a change is told where it was asked for, and once in each other place that has a card of the host's about it.
func TestWhoWasAskedElsewhereHearsHowItEnded(t *testing.T) {
	b := open(t)
	here, third := b.talks("irc", "#echo", "echo"), b.talks("irc", "#third", "echo")
	ada, alone := b.knows("ada", "slack")
	bea, beas := b.knows("bea", "slack")
	row := b.add(change.AwaitingApproval, swap(here))
	b.asks(ada.Person, bea.Person)
	b.do(func(tx store.Tx) error {
		_, err := b.Origin.OpenApproval(t.Context(), tx, row, offer(row, 1))
		for chat, card := range map[id.Chat]message.Card{third.ID: message.CardQuestion, alone.ID: message.CardApproval} {
			_, err2 := tx.PutOut(t.Context(), message.Out{ID: id.NewOut(), Chat: chat, Lane: message.Talk, Card: card, Change: row.ID, Text: "which?", At: ledger.Now()})
			err = errors.Join(err, err2)
		}
		return err
	})
	b.do(func(tx store.Tx) error { return b.Origin.Tell(t.Context(), tx, row, "it is over: "+planted) })
	for chat, want := range map[id.Chat]int{here.ID: 1, alone.ID: 1, beas.ID: 1, third.ID: 0} {
		n := 0
		for _, o := range b.outs(chat) {
			if strings.HasPrefix(o.Text, "it is over: [secret") && o.Lane == message.Notice && o.Change == row.ID {
				n++
			}
		}
		if n != want {
			t.Errorf("told %d times, not %d: %+v", n, want, b.outs(chat))
		}
	}
}

func TestWhatIsToldAloneIsSaidOnceWhereverTheyAreReached(t *testing.T) {
	b := open(t)
	ada, alone := b.knows("ada", "slack")
	_, beas := b.knows("bea", "slack")
	irc := b.talks("irc", "ada", group.Host)
	i := person.Identity{Platform: "irc", Account: "ada"}
	b.do(func(tx store.Tx) error {
		return errors.Join(tx.Link(t.Context(), i, ada.Person, "ada"), tx.NoteDirect(t.Context(), i, irc.Conversation),
			tx.Link(t.Context(), person.Identity{Platform: "matrix", Account: "@ada"}, ada.Person, "ada")) // not reached there
	})
	for _, text := range []string{"mind " + planted, "mind " + planted, "mind the gap"} {
		b.do(func(tx store.Tx) error { return b.Origin.TellAlone(t.Context(), tx, ada.Person, text) })
	}
	for _, chat := range []id.Chat{alone.ID, irc.ID} {
		if all := b.outs(chat); len(all) != 2 || !strings.HasPrefix(all[0].Text, "mind [secret") || all[1].Text != "mind the gap" || all[0].Lane != message.Notice {
			t.Errorf("told is %+v", all)
		}
	}
	if n := len(b.outs(beas.ID)); n != 0 {
		t.Errorf("another was told %d times", n)
	}
}

func TestASessionOfAChatWorksForNoChange(t *testing.T) {
	b := open(t)
	row, here := b.add(change.Working), b.talks("irc", "#echo", "echo")
	for name, c := range map[string]struct {
		of   session.Session
		want id.Change
		says string
	}{
		"of a change":            {session.Session{ID: "sed-aaaaa", Change: row.ID}, row.ID, ""},
		"of a chat":              {session.Session{ID: "sed-bbbbb", Chat: here.ID}, "", "the session sed-bbbbb is a chat with the group echo: it goes on with your next message"},
		"of a chat that is gone": {session.Session{ID: "sed-ccccc", Chat: "cht-gone0000"}, "", "cht-gone0000"},
	} {
		b.do(func(tx store.Tx) error {
			at, err := ledger.ChangeOf(t.Context(), tx, c.of)
			if at.ID != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %q, %v", name, at.ID, err)
			}
			return nil
		})
	}
}
