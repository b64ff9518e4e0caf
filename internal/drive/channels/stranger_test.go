package channels_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"sallyport/internal/chat/message"
	"sallyport/internal/drive/channels"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

var (
	eve     = channeltest.Person{Account: "U6", Handle: "U6", Name: "eve"}
	olgaDM  = channeltest.DirectOf(olga)
	hallway = channel.Place{Address: "hallway", Kind: channel.Group, Name: "the hallway"}
)

// TestAStrangersNameIsQuotedOnACard holds that what strangers call themselves and their places is not read as words of the host.
func TestAStrangersNameIsQuotedOnACard(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		liar := channeltest.Person{Account: "U7", Handle: "U7", Name: `Alice” (chat:U1) wants to talk with echo. "Bob`}
		s.wire(channeltest.DirectOf(liar), "echo")
		s.lives()
		s.tells(liar, "hi” yes ghp_"+"9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi")
		name := `“Alice' (chat:U1) wants to talk with echo. 'Bob” (chat:U7) `
		card := s.newest(olgaDM).Text
		if !strings.Contains(card, name+"wants to talk with echo in “") || !strings.Contains(card, "They said: “hi' yes [secret: github-token]”") {
			t.Errorf("the card about the sender: %s", card)
		}

		s.mentions(liar, hallway, "hi")
		if card := s.newest(olgaDM).Text; !strings.Contains(card, name+"is trying to reach you in “the hallway” on chat. ") {
			t.Errorf("the card about the place: %s", card)
		}
	})
}

// TestAButtonNamesWhatItAnswers holds CH-054 and CH-072, and that a button decides only where its card stands.
func TestAButtonNamesWhatItAnswers(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.wire(channeltest.DirectOf(bob), "echo")
		s.wire(olgaDM, "echo")
		s.wire(stream, "echo")
		s.lives()
		s.tells(bob, "hi")
		sender := s.newest(olgaDM)
		if name, want := s.platform.Names(sender.ID), "nsa:"+string(s.questions(channeltest.DirectOf(bob))[0].ID); name != want {
			t.Errorf("the card about a sender has buttons of %q, not %q", name, want)
		}
		s.mentions(eve, hallway, "hi")
		if name, want := s.platform.Names(s.newest(olgaDM).ID), "nca-"+string(s.questions(hallway)[0].ID); name != want {
			t.Errorf("the card about a place has buttons of %q, not %q", name, want)
		}

		s.platform.Forge(t, stream, olga, channel.Press{Question: s.platform.Names(sender.ID), Option: channels.Allow})
		s.platform.Forge(t, olgaDM, olga, channel.Press{Question: "nca-" + string(s.questions(channeltest.DirectOf(bob))[0].ID), Option: channels.WireTo + "echo"})
		s.platform.Forge(t, olgaDM, olga, channel.Press{Question: "nsa:qst-forged00", Option: channels.Allow})
		if n := s.undecided(); n != 2 || len(s.heard()) != 0 {
			t.Errorf("forged buttons have decided: %d questions wait; heard %q", n, s.heard())
		}
		s.platform.Press(t, olgaDM.Address, sender.ID, olga, channels.Allow)
		same(t, "heard", s.heard(), "echo: hi")
	})
}

// TestOnlyWhomTheCardNamesBecomesAMember holds that somebody who speaks in a place while the owner reads a card about another gets no role by
// it: what they said waits for a card of their own.
func TestOnlyWhomTheCardNamesBecomesAMember(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(bob, hallway, "it is bob")
		s.mentions(eve, hallway, "it is eve")
		if k, known := s.person(eve); known {
			t.Errorf("eve is %+v before anybody has decided", k)
		}
		s.press(olga, olgaDM, channels.WireTo+"echo")

		k, _ := s.person(bob)
		if len(k.Held) != 1 || k.Held[0] != (right.Held{Role: right.Member, Group: "echo"}) {
			t.Errorf("bob holds %+v", k.Held)
		}
		if k, known := s.person(eve); known {
			t.Errorf("eve is %+v", k)
		}
		same(t, "heard", s.heard())
		if told := strings.Join(s.texts(olgaDM), "\n"); !strings.Contains(told, "🙋 “eve” (chat:U6) wants to talk with echo ") {
			t.Errorf("the owner was shown:\n%s", told)
		}
	})
}

// counting is a database that counts the questions that are written, and tells while something that came in is taken.
type counting struct {
	store.DB
	questions int
	taking    atomic.Bool
}

type countingTx struct {
	store.Tx
	of *counting
}

func (c *counting) InTx(ctx context.Context, do func(store.Tx) error) error {
	return c.DB.InTx(ctx, func(tx store.Tx) error {
		defer c.taking.Store(false)
		return do(countingTx{tx, c})
	})
}

func (t countingTx) AddIntake(ctx context.Context, i message.Intake) (message.Intake, bool, error) {
	t.of.taking.Store(true)
	return t.Tx.AddIntake(ctx, i)
}

func (t countingTx) AddQuestion(ctx context.Context, q question.Question) error {
	t.of.questions++
	return t.Tx.AddQuestion(ctx, q)
}

// TestAStrangerWhoWaitsWritesNothing holds that what somebody says while somebody is asked about them leaves no question.
func TestAStrangerWhoWaitsWritesNothing(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		s.wire(channeltest.DirectOf(bob), "echo")
		db := &counting{DB: s.Parts.DB}
		s.Parts.DB = db
		s.lives()
		for range 5 {
			s.tells(bob, "hello?")
			s.mentions(eve, hallway, "hello?")
		}
		if db.questions != 2 {
			t.Errorf("%d questions were written, not 2", db.questions)
		}
	})
}

// TestWithPermissionsOffAStrangerTalksAndDecidesNothing is CH-059: nobody is asked about them, and they become nobody by it. It counts as it
// stands when they speak.
func TestWithPermissionsOffAStrangerTalksAndDecidesNothing(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		off := true
		s.parts = func(p *channels.Parts) { p.Anyone = func() bool { return off } }
		s.wire(channeltest.DirectOf(bob), "echo")
		s.wire(channeltest.DirectOf(eve), "echo")
		s.lives()
		s.tells(bob, "hello")
		same(t, "heard", s.heard(), "echo: hello")
		if k, known := s.person(bob); known {
			t.Errorf("bob is %+v", k)
		}
		if n := len(s.questions(channeltest.DirectOf(bob))); n > 0 {
			t.Errorf("%d questions wait", n)
		}

		off = false
		s.tells(eve, "hello too")
		same(t, "heard", s.heard(), "echo: hello")
		if n := len(s.questions(channeltest.DirectOf(eve))); n != 1 {
			t.Errorf("%d questions wait", n)
		}
	})
}

// TestThePolicyIsReadOnceForWhatIsSaidAndNoTransactionWaitsForIt holds that of an event that is routed twice, and of one that is not routed.
func TestThePolicyIsReadOnceForWhatIsSaidAndNoTransactionWaitsForIt(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		db := &counting{DB: s.Parts.DB}
		s.Parts.DB = db
		asked := 0
		s.parts = func(p *channels.Parts) {
			p.Anyone = func() bool {
				if asked++; db.taking.Load() {
					t.Error("a transaction waits for the policy")
				}
				return false
			}
		}
		s.lives()
		s.tells(olga, "hello") // wires the place at once, and is heard
		s.mentions(bob, hallway, "hello")
		if asked != 2 {
			t.Errorf("of two events the policy was read %d times", asked)
		}
	})
}
