package dispatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/decide"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// changing is a scene in which a change was asked for in a conversation, and waits for a person there.
type changing struct {
	*scene
	d       *dispatch.Dispatcher
	chat    id.Chat
	change  id.Change
	service *drivetest.Service
	kept    *drivetest.Kept
	end     func()
}

// asksThere plays a home with a target, whose page is to be changed by an agent; class is that of its card.
func asksThere(t *testing.T, class right.Class, test func(t *testing.T, s *changing)) {
	t.Helper()
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		c := &changing{scene: s}
		s.Git("reset", "-q", "--hard")
		s.Write("one\n")
		s.Git("add", "page.txt")
		s.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "page")
		c.service, c.kept = s.Serve(), drivetest.Keep(s.Home)
		s.Parts.Agents["played"] = drivetest.Played{}
		s.Cage.Program = func(spec sandbox.Spec, killed <-chan struct{}) int {
			if slices.Contains(spec.Argv, "adapt") {
				return s.run(spec, killed)
			}
			return drivetest.Writes("two\n")(0, spec.Tree.Dir, killed)
		}
		s.drives = true
		c.begin(t)
		c.request(t)
		if class != "" {
			c.askAgain(class)
		}
		test(t, c)
	})
}

func (s *changing) begin(t *testing.T) {
	t.Helper()
	s.d, s.end = s.lives()
	chat, err := s.d.Open(gittest.Context(t), "echo", "1000")
	if err != nil {
		t.Fatal(err)
	}
	s.chat = chat.ID
}

func (s *changing) request(t *testing.T) {
	t.Helper()
	r, err := s.control.TakeRequest(gittest.Context(t), request.Request{
		By: s.By(), Text: "Greet people by name", Project: git.Project{Top: s.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Later,
		Group: "echo", Chat: s.chat,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.change = r.Change.ID
	s.Is(s.control, s.change, change.AwaitingApproval)
}

// askAgain asks anew, as of a change of that class.
func (s *changing) askAgain(class right.Class) {
	s.T.Helper()
	var row change.Row
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		p, _, err := tx.Proposal(ctx, s.change)
		if err != nil {
			return err
		}
		if row, err = tx.Change(ctx, s.change); err != nil {
			return err
		}
		p.Number, p.At, p.Card.Class = p.Number+1, ledger.Now(), string(class)
		_, err = s.control.Origin.OpenApproval(ctx, tx, row, p)
		return err
	})
	synctest.Wait()
}

// looks has somebody read the conversation, and go away again.
func (s *changing) looks(t *testing.T) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	err := s.d.Watch(ctx, s.chat, 100, func(lines []dispatch.Line) error {
		if slices.ContainsFunc(lines, func(l dispatch.Line) bool { return l.Kind == dispatch.LineReady }) {
			leave()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// says says something, and returns what was told last.
func (s *changing) says(text string) (message.In, string) {
	s.T.Helper()
	m := s.say(s.d, "echo", text)
	sent := s.sent(s.chat)
	return m, sent[len(sent)-1]
}

func TestAGroupsChangeIsDecidedInWordsWhereItWasAskedFor(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		name := string(s.change)
		sent := s.sent(s.chat)
		if card := sent[len(sent)-3:]; !strings.HasPrefix(card[0], "notice: "+name+"  Greet people by name\nIt changes what the group echo runs") ||
			!strings.HasPrefix(card[1], "notice: diff of "+name+", 1 of 1\ndiff --git a/page.txt b/page.txt") || card[2] != "notice: May "+name+" land?\n1. approve\n2. refuse" {
			t.Errorf("the card is %q", card)
		}

		if m, told := s.says("approve"); m.Decides == nil || !strings.Contains(told, "you had not been shown this here before.\n`11 approve` approves "+name+": Greet people by name") {
			t.Errorf("before it was shown: %q, %+v", told, m)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
		s.looks(t)
		m, told := s.says(" Approve ")
		if m.Status != message.Completed || m.Decides.Problem != "" || !slices.Contains(s.sent(s.chat), "notice: ann approved "+name+". sallyport lands it now.") {
			t.Errorf("approved: %+v", m)
		}
		s.Asked(s.control, s.change)
		if told != "I'm back with the new version. Reply `confirm` to keep it, or `rollback` to revert." || s.Page() != "two\n" {
			t.Errorf("message 1 is %q, the page %q", told, s.Page())
		}

		s.looks(t)
		if d := s.Show(s.control, s.change); d.Trial.Delivered == nil {
			t.Error("who watches was told message 1, and its deadline has not moved (SM-125)")
		}
		if m, told := s.says("confirm"); m.Reason != "ann confirmed "+name+"." || told != "notice: "+name+" is landed and kept: confirmed by ann" {
			t.Errorf("confirmed: %q, %q", told, m.Reason)
		}
		s.Is(s.control, s.change, change.Finalized)
		if m, told := s.says("rollback"); m.Decides.Kind != decide.Over || !strings.Contains(told, "ann has confirmed "+name+" already") {
			t.Errorf("an old card says %q", told)
		}
		s.Is(s.control, s.change, change.Finalized)
		if heard := s.told(); len(heard) > 0 {
			t.Errorf("an agent heard %q", heard)
		}
	})
}

func TestARollbackInWordsIsToldAsItIsDone(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		s.says("1")
		s.looks(t)
		s.says("ROLLBACK")
		s.Is(s.control, s.change, change.RolledBack)
		sent := s.sent(s.chat)
		same(t, "told", sent[len(sent)-2:], "notice: ann has "+string(s.change)+" rolled back. sallyport does it now.", "notice: Rolled back to previous version — asked for by ann")
		if s.Page() != "one\n" {
			t.Errorf("the page is %q", s.Page())
		}
	})
}

func TestSilenceIsToldInTheWordsOfEveryChannel(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		s.says("approve")
		s.looks(t)
		time.Sleep(3 * time.Minute)
		s.Is(s.control, s.change, change.RolledBack)
		sent := s.sent(s.chat)
		same(t, "told", sent[len(sent)-1:], "notice: Rolled back to previous version — confirmation timed out.")
		if m, told := s.says("confirm"); m.Decides.Kind != decide.Over || !strings.Contains(told, "sallyport has decided already to roll "+string(s.change)+" back") {
			t.Errorf("too late: %q", told)
		}
	})
}

// A change of the host takes typed words, and what others say is talk (SM-084, SM-140).
func TestAChangeOfTheHostTakesTypedWordsAndNobodyElses(t *testing.T) {
	asksThere(t, "", func(t *testing.T, s *changing) {
		s.looks(t)
		for _, text := range []string{"approve", "1"} {
			if m, told := s.says(text); m.Decides.Kind != decide.Typed || !strings.Contains(told, "type CONFIRM HOST") {
				t.Errorf("%q: %q", text, told)
			}
		}
		other := s.By()
		other.Person, other.UID = "psn-0000else", 4711
		m, err := s.d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: "CONFIRM HOST", Account: "1000", Name: "else", By: other})
		synctest.Wait()
		if err != nil || m.Decides != nil || len(s.told()) != 1 {
			t.Errorf("another's words: %+v, %v", m, err)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
		s.says("confirm host")
		s.Asked(s.control, s.change)
	})
}

// One person alone thinks first about a change of the host, also where they are asked in a conversation (SM-912).
func TestAChangeOfTheHostIsThoughtAboutAlsoInAConversation(t *testing.T) {
	asksThere(t, right.Host, func(t *testing.T, s *changing) {
		s.looks(t)
		if _, told := s.says("confirm host"); !strings.HasPrefix(told, "notice: Nothing is decided: ") || !strings.Contains(told, "Your yes counts in 1m0s; next: sallyport approve "+string(s.change)+" --typed 'CONFIRM HOST'") {
			t.Errorf("at once: %q", told)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
		time.Sleep(time.Minute)
		if m, _ := s.says("CONFIRM HOST"); !strings.Contains(m.Reason, "approved "+string(s.change)) {
			t.Errorf("a minute later: %+v", m)
		}
		s.Asked(s.control, s.change)
	})
}

// What was refused is told once, and what can no longer be done is told with a way out.
func TestWhatCannotBeDoneAnyMoreIsToldWithAWayOut(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		time.Sleep(time.Second)
		s.askAgain(right.Group)
		s.looks(t)
		if m, told := s.says("11 refuse"); m.Decides.Kind != decide.Over || !strings.Contains(told, "replaced this card") {
			t.Errorf("a card that was replaced: %q", told)
		}
		if m, told := s.says("refuse"); m.Decides.Kind != decide.Which || !strings.Contains(told, "`12 refuse` refuses "+string(s.change)) {
			t.Errorf("a card that has just come after another: %q", told)
		}
		if err := s.control.Cancel(gittest.Context(t), s.change, s.By(), "enough"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		sent := s.sent(s.chat)
		same(t, "told", sent[len(sent)-1:], "notice: ann cancelled "+string(s.change)+": enough; nothing of it landed")
		if m, told := s.says("12 refuse"); m.Decides.Kind != decide.Over || !strings.Contains(told, "next: sallyport change show "+string(s.change)) {
			t.Errorf("a card of what was cancelled: %q", told)
		}
	})
}

// What the conversation does not show whole is not approved there (SM-909).
func TestADiffThatIsNotShownWholeIsNotApprovedInTheConversation(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			p, _, err := tx.Proposal(ctx, s.change)
			if err != nil {
				return err
			}
			row, err := tx.Change(ctx, s.change)
			if err != nil {
				return err
			}
			p.Number, p.Card.Spoken.Longer = p.Number+1, true
			_, err = s.control.Origin.OpenApproval(ctx, tx, row, p)
			return err
		})
		s.looks(t)
		m, told := s.says("12 approve")
		if m.Decides.Kind != decide.Elsewhere || !strings.HasSuffix(told, "To approve it: sallyport approve "+string(s.change)) {
			t.Errorf("%q", told)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
		s.says("12 refuse")
		s.Is(s.control, s.change, change.Rejected)
	})
}

// What somebody wants different is said in the conversation, and why they refuse, too (SM-087).
func TestWordsBehindADecisionAreItsReason(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.Tx(func(ctx context.Context, tx store.Tx) error { // as if its agent had proposed it in so many words
			row, err := tx.Change(ctx, s.change)
			if err != nil {
				return err
			}
			row.Swap = &change.Swap{Checkpoint: row.Chosen}
			p, _, err := tx.Proposal(ctx, s.change)
			if err != nil {
				return err
			}
			p.Number, p.Card.Reworks = p.Number+1, true
			_, err = s.control.Origin.OpenApproval(ctx, tx, row, p)
			return errors.Join(err, tx.MoveChange(ctx, row.State, row))
		})
		s.looks(t)
		time.Sleep(time.Minute)
		if sent := s.sent(s.chat); !strings.HasSuffix(sent[len(sent)-1], "\n2. refuse\nTo have it changed first, reply `change: …` with what is to be different.") {
			t.Errorf("it asks %q", sent[len(sent)-1])
		}
		if m, told := s.says("change"); m.Decides == nil || !strings.Contains(told, "such as `12 change: greet people by name`") {
			t.Errorf("without words: %q", told)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
		m, _ := s.says("Change: say Hi, Bob")
		want := "notice: ann wants " + string(s.change) + " changed before it lands: say Hi, Bob;"
		if m.Decides == nil || m.Decides.Problem != "" || !slices.ContainsFunc(s.sent(s.chat), func(told string) bool { return strings.HasPrefix(told, want) }) {
			t.Errorf("%+v; told %q", m, s.sent(s.chat))
		}
		if m, told := s.says("12 approve"); m.Decides.Kind != decide.Over || !strings.Contains(told, "ann answered already") || !strings.Contains(told, "have it changed first") {
			t.Errorf("the card that was withdrawn says %q", told)
		}
		s.Is(s.control, s.change, change.AwaitingApproval) // it is proposed again
		s.looks(t)
		s.says("13 refuse: it is no better")
		s.Is(s.control, s.change, change.Rejected)
		sent := s.sent(s.chat)
		same(t, "told", sent[len(sent)-1:], "notice: ann refused "+string(s.change)+": it is no better; nothing of it landed")

		for state, want := range map[change.State]string{
			"":               string(s.change) + " is rejected. For another change ask the assistant, as for that one.",
			change.Submitted: "chg-00000002 is under way (submitted), and its card takes `change: …` once it comes. Asking the assistant for another change ends this one; next: sallyport change show chg-00000002",
			change.InTrial:   "chg-00000002 is on trial: once that has ended, ask the assistant for another change; next: sallyport change show chg-00000002",
		} {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				row, err := tx.Change(ctx, "chg-00000002")
				switch {
				case state == "" && problem.KindOf(err) == problem.NotFound:
					return nil
				case problem.KindOf(err) == problem.NotFound:
					return tx.AddChange(ctx, change.Row{ID: "chg-00000002", State: state, Created: time.Now(), Moved: time.Now(), Request: request.Request{Kind: request.Swap, Group: "echo", By: s.By()}})
				}
				was := row.State
				row.State = cmp.Or(state, change.Failed)
				return tx.MoveChange(ctx, was, row)
			})
			if m, told := s.says("change: be rude"); m.Decides.Kind != decide.Over || told != "notice: Nothing is decided: no card waits that takes `change: …`. "+want {
				t.Errorf("with another that is %q: %q", state, told)
			}
		}
	})
}

// TestChangeWithoutACardSaysWhatIsUnderWay holds that words for a card that has not come reach no assistant: another wish would end what is
// under way. Nobody else's do, and none where a card, or no change, is what they could be for.
func TestChangeWithoutACardSaysWhatIsUnderWay(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		chat := s.say(d, "echo", "hello").Chat
		row := change.Row{ID: "chg-00000002", State: change.Working, Created: time.Now(), Moved: time.Now(), Request: request.Request{Kind: request.Swap, Group: "echo", Chat: chat, By: s.By(), Dev: "dev-greets", Agent: "echo"}}
		s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.AddChange(ctx, row) })
		other := s.By()
		other.Person, other.Name = "psn-otherone", "bea"
		const takes = "notice: Nothing is decided: no card waits that takes `change: …`. chg-00000002 is "
		for _, c := range []struct {
			state   change.State
			account string
			by      audit.Actor
			text    string
			edited  bool
			want    string
		}{
			{change.Working, "1000", s.By(), " Change: be rude", false, takes + "under way (working), and its card takes `change: …` once it comes. Asking the assistant for another change ends this one; next: sallyport change show chg-00000002"},
			{change.Working, "1000", other, "change: be rude", false, "heard: change: be rude"},
			{change.Working, "1001", s.By(), "change: be rude", false, "heard: change: be rude"},
			{change.Working, "1000", s.By(), "change: be rude", true, "heard: change: be rude"},
			{change.Working, "1000", s.By(), "refuse: be rude", false, "heard: refuse: be rude"},
			{change.Working, "1000", s.By(), "rollback", false, "heard: rollback"},
			{change.Submitted, "1000", s.By(), "change: be rude", false, takes + "under way (submitted), and its card takes `change: …` once it comes. Asking the assistant for another change ends this one; next: sallyport change show chg-00000002"},
			{change.AwaitingApproval, "1000", s.By(), "change: be rude", false, "heard: change: be rude"},
			{change.AwaitingApproval, "1000", s.By(), "rollback", false, "heard: rollback"},
			{change.Landing, "1000", s.By(), " Rollback", false, "notice: Nothing is decided: chg-00000002 is about to land. Once it is on trial, reply `rollback` to the card that comes then."},
			{change.Landing, "1000", s.By(), "rollback of the draft, please", false, "heard: rollback of the draft, please"},
			{change.Landing, "1000", other, "rollback", false, "heard: rollback"},
			{change.InTrial, "1000", s.By(), "change: be rude", false, takes + "on trial: once that has ended, ask the assistant for another change; next: sallyport change show chg-00000002"},
			{change.Failed, "1000", s.By(), "change: be rude", false, "heard: change: be rude"},
		} {
			if c.state != row.State {
				was := row.State
				row.State = c.state
				s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.MoveChange(ctx, was, row) })
			}
			m, err := d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: c.text, Account: c.account, Name: c.by.Name, By: c.by, Edited: c.edited})
			synctest.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if sent := s.sent(m.Chat); sent[len(sent)-1] != c.want {
				t.Errorf("%q by %s at %s while it is %s: told %q", c.text, c.by.Name, c.account, c.state, sent[len(sent)-1])
			}
			if m.Decides != nil && m.Decides.Problem != problem.Conflict {
				t.Errorf("%q decides %+v", c.text, m.Decides)
			}
		}
	})
}

// A decision is its row: what a daemon that was killed had not done is done by the next one, once, and said again it is the same.
func TestADecisionInWordsOutlivesTheDaemonAndIsDoneOnce(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		s.end()
		var of message.In
		s.Tx(func(ctx context.Context, tx store.Tx) error { // as it is when the daemon is killed right after the commit
			asked, _, err := tx.PendingApproval(ctx, s.change)
			if err != nil {
				return err
			}
			of, err = tx.PutIn(ctx, message.In{
				ID: id.NewMessage(), Chat: s.chat, Kind: "chat", Identity: "terminal:1000", Sender: "ann", Text: "approve", At: time.Now(), Due: time.Now(), Status: message.Processing,
				Decides: &message.Decision{Kind: decide.Decided, Does: decide.Approve, Asks: message.CardApproval, Change: s.change, Approval: asked.ID, Digest: string(asked.Digest), By: s.By()},
			})
			return err
		})
		for range 2 {
			s.begin(t)
			s.Asked(s.control, s.change)
			if m := s.now(of.ID); m.Status != message.Completed || m.Decides.Problem != "" {
				t.Errorf("%+v", m)
			}
			s.end()
		}
		s.begin(t)
		if n := drivetest.Count(s.sent(s.chat), "notice: ann approved "+string(s.change)+". sallyport lands it now."); n != 1 {
			t.Errorf("told %d times: %q", n, s.sent(s.chat))
		}

		s.looks(t)
		say := func() message.In {
			m, err := s.d.Say(gittest.Context(t), dispatch.Said{Group: "echo", Text: "confirm", Nonce: "n1", Account: "1000", Name: "ann", By: s.By()})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return m
		}
		first, again := say(), say()
		if first.ID != again.ID || again.Status != message.Completed || again.Decides.Problem != "" {
			t.Errorf("%+v, and again %+v", first, again)
		}
		if v := s.Verbs(s.control, s.change); drivetest.Count(v, "approved") != 1 || drivetest.Count(v, "confirmed") != 1 {
			t.Errorf("the audit log says %q", v)
		}
	})
}

// TestWordsThatMayHaveAnsweredAnAgentApproveNothing: an agent that asks for the word "approve", or lists two cities, has no change of its own
// approved by the answer (SM-140).
func TestWordsThatMayHaveAnsweredAnAgentApproveNothing(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		time.Sleep(2 * time.Minute)
		mine := s.card()
		asked, card := s.asked("Shall I book? Reply approve or refuse")
		want := fmt.Sprintf("Nothing is decided: that could mean more than one card. Reply one of these, with the card's number:\n"+
			"`%d approve` approves %s: Greet people by name\n`%d approve` answers: Shall I book? Reply approve or refuse", mine.Digits, s.change, card.Digits)
		if _, told := s.says("approve"); told != "notice: "+want {
			t.Errorf("told %q, want %q", told, want)
		}
		s.says(fmt.Sprintf("%d approve", card.Digits))
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			q, err := tx.Question(ctx, asked.ID)
			if err == nil && (q.Answer == nil || q.Answer.Text != "approve") {
				t.Errorf("the agent is answered %+v", q.Answer)
			}
			return err
		})
		s.Is(s.control, s.change, change.AwaitingApproval)
	})
}

// TestAWordThatAnAgentHasAskedForInPlainTalkApprovesNothing: it was no card of its own, and a person answers it all the same (SM-140).
func TestAWordThatAnAgentHasAskedForInPlainTalkApprovesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		says, reply string
		sooner      time.Duration // before the card
		asks        bool
	}{
		"the word":                 {"I found a table. Reply APPROVE, or refuse", "approve", 0, true},
		"the word before the card": {"I found a table. Reply approve", "approve", 30 * time.Second, true},
		"options before the card":  {"Which city? 1. Paris 2. Rome", "1", 30 * time.Second, true},
		"an option before it":      {"(1) Paris, (2) Rome", "2", 30 * time.Second, true},
		"any talk after the card":  {"Which city? Paris, or Rome", "2", 0, true},
		"an option in words":       {"Reply 1 for Paris, 2 for Rome", "1", 30 * time.Second, true},
		"an option in a frame":     {"1\ufe0f\u20e3 Paris", "1", 30 * time.Second, true},
		"part of an id":            {"I have asked for chg-k1m2n3p4", "1", 30 * time.Second, false},
		"part of a number":         {"There are 12 tables", "1", 30 * time.Second, false},
		"a word in other letters":  {"Reply \u0430ppro\u200bve, please", "approve", 0, true},
		"a word with style":        {"Reply a**pprove**, please", "approve", 0, true},
		"other options before it":  {"2. Rome 3. Oslo", "1", 30 * time.Second, false},
		"other talk before it":     {"I have asked for a change", "1", 30 * time.Second, false},
		"a day and a month":        {"When? As day and month, such as %d 1", "%d 1", 0, true},
		"another word":             {"I found a table. Shall I book it?", "approve", 0, false},
		"long before the card":     {"Which city? Reply approve. 1. Paris 2. Rome", "approve", 2 * time.Minute, false},
		"with the card's own name": {"I found a table. Reply approve", "%d approve", 0, false},
		"the host's other word":    {"I found a table. Reply refuse, or approve", "refuse", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			asksThere(t, right.Group, func(t *testing.T, s *changing) {
				speaks := func(digits string) {
					s.Tx(func(ctx context.Context, tx store.Tx) error {
						says := strings.ReplaceAll(c.says, "%d", digits)
						_, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: s.chat, Lane: message.Talk, Text: says, At: time.Now()})
						return err
					})
				}
				if c.sooner > 0 {
					speaks("")
					time.Sleep(c.sooner)
				}
				s.askAgain(right.Group)
				s.looks(t)
				mine := s.card()
				time.Sleep(2 * time.Minute)
				digits := strconv.Itoa(mine.Digits)
				if c.sooner == 0 {
					speaks(digits)
				}
				reply := strings.ReplaceAll(c.reply, "%d", digits)
				_, told := s.says(reply)
				if asked := strings.Contains(told, "an assistant has said something that you may have answered"); asked != c.asks {
					t.Errorf("%q after %q: %s", reply, c.says, told)
				}
				if waits := s.Show(s.control, s.change).Change.State == change.AwaitingApproval; waits != c.asks {
					t.Errorf("%q after %q decides", reply, c.says)
				}
			})
		})
	}
}

// TestANumberMayAnswerWhatAnAgentHasSaidSinceItsCard: who watches has read what is said in a turn under way too.
func TestANumberMayAnswerWhatAnAgentHasSaidSinceItsCard(t *testing.T) {
	const asks = "Which city? 1. Paris 2. Rome"
	for name, speaks := range map[string]func(*changing){
		"before a daemon began": func(s *changing) {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				_, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: s.chat, Lane: message.Talk, Text: asks, At: time.Now()})
				return err
			})
		},
		"in a turn": func(s *changing) {
			s.turn = func(ctx context.Context, _ string, st *stage) (string, error) {
				st.Say(asks)
				<-ctx.Done()
				return "", ctx.Err()
			}
			s.say(s.d, "echo", "A trip")
			time.Sleep(time.Second) // its pieces come together
		},
	} {
		t.Run(name, func(t *testing.T) {
			asksThere(t, right.Group, func(t *testing.T, s *changing) {
				s.looks(t)
				mine := s.card()
				time.Sleep(2 * time.Minute)
				speaks(s)
				want := fmt.Sprintf("notice: Nothing is decided: an assistant has said something that you may have answered. "+
					"If you mean card %[1]d, reply with its number:\n`%[1]d approve` approves %[2]s: Greet people by name", mine.Digits, s.change)
				if _, told := s.says("1"); told != want {
					t.Errorf("told %q, want %q", told, want)
				}
				s.Is(s.control, s.change, change.AwaitingApproval)
				s.says(fmt.Sprintf("%d 1", mine.Digits))
				s.Asked(s.control, s.change)
			})
		})
	}
}

// TestWordsThatNearlyDecideAreToldToBeNone: the agent hears them, and who said them hears what the card takes.
func TestWordsThatNearlyDecideAreToldToBeNone(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		card := s.card()
		m, _ := s.says("Approve!")
		want := fmt.Sprintf("notice: Nothing is decided by that: card %[1]d still waits.\n`%[1]d approve` approves %[2]s: Greet people by name", card.Digits, s.change)
		if m.Decides != nil || drivetest.Count(s.sent(s.chat), want) != 1 {
			t.Errorf("it decides %+v; told %q, not %q", m.Decides, s.sent(s.chat), want)
		}
		m, _ = s.says(fmt.Sprintf("%d approv", card.Digits))
		want += fmt.Sprintf("\n`%d refuse` refuses %s: Greet people by name", card.Digits, s.change)
		if m.Decides != nil || drivetest.Count(s.sent(s.chat), want) != 1 {
			t.Errorf("it decides %+v; told %q, not %q", m.Decides, s.sent(s.chat), want)
		}
		s.Is(s.control, s.change, change.AwaitingApproval)
	})
}

// card is the newest of the group's conversation.
func (s *changing) card() (card message.Out) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		chat, err := tx.Chat(ctx, s.chat)
		if err != nil {
			return err
		}
		cards, err := tx.Cards(ctx, chat.Conversation, 10)
		if err == nil {
			card = cards[len(cards)-1]
		}
		return err
	})
	return card
}

// asked has the group's agent ask something that any words answer.
func (s *changing) asked(title string) (q question.Question, card message.Out) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
		q = question.New(s.chat.Subject(), title, nil, time.Now())
		if err := question.Put(ctx, tx, q); err != nil {
			return err
		}
		card, err = tx.PutOut(ctx, message.Out{
			ID: id.NewOut(), Chat: s.chat, Lane: message.Talk, Question: q.ID, Card: message.CardQuestion, Text: q.Text(), At: time.Now(),
		})
		return err
	})
	time.Sleep(time.Second)
	return q, card
}

// A decision that another was faster with is told, with how to see what won.
func TestWhoWasLateWithADecisionIsToldWhoWasFirst(t *testing.T) {
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		s.looks(t)
		s.says("approve")
		s.looks(t)
		s.end()
		var of message.In
		s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
			of, err = tx.PutIn(ctx, message.In{
				ID: id.NewMessage(), Chat: s.chat, Kind: "chat", Identity: "terminal:1000", Sender: "ann", Text: "rollback", At: time.Now(), Due: time.Now(), Status: message.Processing,
				Decides: &message.Decision{Kind: decide.Decided, Does: decide.RollBack, Asks: message.CardTrial, Change: s.change, By: s.By()},
			})
			return err
		})
		if err := s.control.Confirm(gittest.Context(t), s.change, s.By(), ""); err != nil {
			t.Fatal(err)
		}
		s.begin(t)
		synctest.Wait()
		m := s.now(of.ID)
		if m.Decides.Problem != problem.Conflict || !strings.Contains(m.Reason, "ann has confirmed "+string(s.change)+" already; next: sallyport change show") {
			t.Errorf("%+v", m)
		}
		if sent := s.sent(s.chat); sent[len(sent)-1] != "notice: "+m.Reason {
			t.Errorf("told %q", sent)
		}
		s.Is(s.control, s.change, change.Finalized)
	})
}

// Who goes away once the conversation has been told has seen its cards, and who could not be told one takes it from nobody else.
func TestACardIsShownToWhoLeavesAtOnceAndWhateverAnotherMissed(t *testing.T) {
	gone := errors.New("they have gone away")
	reads := func(t *testing.T, s *changing, tell func(lines []dispatch.Line) error) {
		t.Helper()
		if err := s.d.Watch(gittest.Context(t), s.chat, 100, tell); !errors.Is(err, gone) {
			t.Error(err)
		}
	}
	leaves := func(lines []dispatch.Line) error {
		if slices.ContainsFunc(lines, func(l dispatch.Line) bool { return l.Kind == dispatch.LineReady }) {
			return gone
		}
		return nil
	}
	asksThere(t, right.Group, func(t *testing.T, s *changing) {
		reads(t, s, func([]dispatch.Line) error { return gone })
		if m, _ := s.says("11 approve"); m.Decides.Kind != decide.Unseen {
			t.Errorf("nobody was shown it: %+v", m.Decides)
		}
		reads(t, s, func([]dispatch.Line) error { // meanwhile another is told it
			reads(t, s, leaves)
			return gone
		})
		if m, _ := s.says("11 approve"); m.Decides.Kind != decide.Decided {
			t.Errorf("it was shown to who left: %+v", m.Decides)
		}
	})
}
