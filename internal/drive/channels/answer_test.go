package channels_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// asks has the agent of the first group ask the people of a place something that takes words alone.
func (s *scene) asks(at channel.Place) {
	s.T.Helper()
	s.Tx(func(ctx context.Context, tx store.Tx) error {
		where, err := s.place(ctx, tx, at)
		if err != nil {
			return err
		}
		chat, err := tx.PutChat(ctx, conversation.Chat{ID: id.NewChat(), Group: s.groups[0], Conversation: where.ID, Created: time.Now()})
		if err != nil {
			return err
		}
		q := question.New(chat.ID.Subject(), "What colour?", nil, time.Now())
		if err := question.Put(ctx, tx, q); err != nil {
			return err
		}
		_, err = tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Talk, Turn: 1, Question: q.ID, Card: message.CardQuestion, Text: q.Text(), At: time.Now()})
		return err
	})
	synctest.Wait() // it has arrived before anybody answers
}

// TestWhatIsNoAnswerHoldsUpNobody holds that words which cannot answer an agent's open question are taken from the platform, and heard where
// they are talk: others are heard after them.
func TestWhatIsNoAnswerHoldsUpNobody(t *testing.T) {
	for name, c := range map[string]struct {
		by     channeltest.Person
		text   string
		reply  bool // it answers to the question where it stands
		heard  string
		notice string
	}{
		"a stranger's words":      {by: bob, text: "blue", heard: "echo: blue"},
		"a stranger's picture":    {by: bob, heard: "echo: "},
		"the owner's picture":     {by: olga, heard: "echo: "},
		"more than an answer has": {by: olga, text: strings.Repeat("x", question.TextBytesMax+1), notice: "Nothing is answered: "},
		"a reply that has more":   {by: olga, text: strings.Repeat("x", question.TextBytesMax+1), reply: true, notice: "Nothing is answered: "},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				s.know(cyd, right.Held{Role: right.Member, Group: "echo"})
				at := channeltest.DirectOf(c.by)
				where := s.wire(at, "echo")
				s.Tx(func(ctx context.Context, tx store.Tx) error { return tx.SetPolicy(ctx, where.ID, conversation.Public) })
				s.wire(channeltest.DirectOf(cyd), "echo")
				s.lives()
				s.asks(at)

				if c.reply {
					s.platform.Say(t, channeltest.Saying{By: c.by, Place: at, Text: c.text, Quote: &channel.Quote{ID: s.newest(at).ID}})
					synctest.Wait()
				} else {
					s.tells(c.by, c.text)
				}
				s.tells(cyd, "is anybody there?")
				want := []string{"echo: is anybody there?"}
				if c.heard != "" {
					want = append([]string{c.heard}, want...)
				}
				slices.Sort(want) // two conversations, whose turns run beside each other
				same(t, "heard", slices.Sorted(slices.Values(s.heard())), want...)
				if len(s.drops()) > 0 {
					t.Errorf("dropped: %v", s.drops())
				}
				if c.notice != "" && !strings.HasPrefix(s.newest(at).Text, c.notice) {
					t.Errorf("told %q", s.newest(at).Text)
				}
			})
		})
	}
}

// TestAReplyDecidesAboutTheCardItAnswersToAndNothingElse holds that words which answer to another message are no decision, also where the
// platform does not say to which, or what it said.
func TestAReplyDecidesAboutTheCardItAnswersToAndNothingElse(t *testing.T) {
	play(t, []string{"echo", "other"}, func(t *testing.T, s *scene) {
		s.lives()
		s.mentions(cyd, room, "hello")
		at := channeltest.DirectOf(olga)
		answers := func(q *channel.Quote) (open int) {
			time.Sleep(time.Minute)
			s.platform.Say(t, channeltest.Saying{By: olga, Place: at, Text: "1", Quote: q})
			time.Sleep(time.Second)
			return len(s.questions(room))
		}
		before := len(s.questions(room))
		for name, q := range map[string]*channel.Quote{"one that is gone": {ID: "m1"}, "one that nobody knows": {}} {
			if open := answers(q); before == 0 || open != before {
				t.Errorf("a reply to %s: %d of %d questions wait", name, open, before)
			}
		}
		card := slices.IndexFunc(s.arrived(at), func(a channeltest.Arrived) bool { return len(a.Buttons) > 0 })
		if open := answers(&channel.Quote{ID: s.arrived(at)[card].ID, From: "sallyport", Text: "Wire to which agent?"}); open != before-1 {
			t.Errorf("a reply to the card: %d of %d questions wait", open, before)
		}
	})
}
