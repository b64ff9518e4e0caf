package channels_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/channels"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/port/channel/channeltest"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
	"sallyport/internal/who/question"
)

// answers answers a question by its name, at a terminal.
func (s *scene) answers(of id.Question, words string, by audit.Actor) error {
	s.T.Helper()
	_, err := s.dispatch.Answer(s.T.Context(), of, dispatch.Said{Text: words, Account: "1000", Name: by.Name, By: by})
	return err
}

// TestAStrangerIsLetInByTheNameOfTheQuestion holds CH-055 and CH-901 for /answer: it lets in as the card does, and no agent is told.
func TestAStrangerIsLetInByTheNameOfTheQuestion(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		at := channeltest.DirectOf(bob)
		s.wire(at, "echo")
		s.lives()
		s.tells(bob, "one")
		of := s.questions(at)[0].ID
		nobody := audit.Actor{Kind: "person", Name: "eve", Identity: "terminal:1009"}
		for name, c := range map[string]struct {
			words string
			by    audit.Actor
			want  problem.Kind
		}{
			"words that it does not take": {"perhaps", s.By(), problem.Usage},
			"somebody whom nobody asked":  {channels.Allow, nobody, problem.Denied},
		} {
			if err := s.answers(of, c.words, c.by); problem.KindOf(err) != c.want || len(s.questions(at)) != 1 {
				t.Errorf("%s: %v, %d questions wait", name, err, len(s.questions(at)))
			}
		}

		if err := s.answers(of, " Allow ", s.By()); err != nil {
			t.Fatal(err)
		}
		same(t, "heard", s.heard(), "echo: one")
		s.tells(bob, "two")
		same(t, "heard", s.heard(), "echo: one", "echo: two")
		if k, _ := s.person(bob); len(k.Held) != 1 || k.Held[0] != (right.Held{Role: right.Member, Group: "echo"}) {
			t.Errorf("bob holds %+v", k.Held)
		}
		if n := len(s.ins(group.Host)); n > 0 {
			t.Errorf("%d messages wait for an agent of the host", n)
		}
		if err := s.answers(of, channels.Allow, s.By()); err != nil {
			t.Errorf("said again: %v", err)
		}
		if err := s.answers(of, channels.Deny, s.By()); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "answered already") {
			t.Errorf("said otherwise: %v", err)
		}
	})
}

// TestAPlaceIsWiredByTheNameOfTheQuestion holds CH-066 for it, of a group that is there and of one that is not.
func TestAPlaceIsWiredByTheNameOfTheQuestion(t *testing.T) {
	for words, want := range map[string]string{"notes": "notes: hello", "create Kitchen": "kitchen: hello"} {
		t.Run(words, func(t *testing.T) {
			play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
				s.making()
				s.lives()
				s.mentions(bob, hallway, "hello")
				of := s.questions(hallway)[0].ID
				if err := s.answers(of, dispatch.CreateNew, s.By()); problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "name") {
					t.Errorf("a group without a name: %v", err)
				}
				if err := s.answers(of, words, s.By()); err != nil {
					t.Fatal(err)
				}
				same(t, "heard", s.heard(), want)
				if n := len(s.questions(hallway)); n > 0 {
					t.Errorf("%d questions wait", n)
				}
			})
		})
	}
}

// TestWhatWaitedForAQuestionThatHasEndedIsForgotten holds that nobody stays a stranger who is asked about already.
func TestWhatWaitedForAQuestionThatHasEndedIsForgotten(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		at := channeltest.DirectOf(bob)
		s.wire(at, "echo")
		end := s.lives()
		s.tells(bob, "one")
		s.mentions(cyd, hallway, "hello")
		of := s.questions(at)[0].ID
		end()
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			return question.Withdraw(ctx, tx, of, "it is over", time.Now())
		})

		s.lives()
		var left []id.Question
		s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
			left, err = tx.PendingQuestions(ctx, "")
			return err
		})
		if open := s.questions(hallway); len(left) != 1 || len(open) != 1 || left[0] != open[0].ID {
			t.Errorf("%v wait still", left)
		}
		s.tells(bob, "two")
		if n := len(s.questions(at)); n != 1 {
			t.Errorf("%d questions wait after they wrote again", n)
		}
	})
}

// TestWhoeverMayDecidesWhereNobodyElseCanAnyMore holds that a question is answered by its name, also once the admin who was asked is gone.
func TestWhoeverMayDecidesWhereNobodyElseCanAnyMore(t *testing.T) {
	play(t, []string{"echo", "notes"}, func(t *testing.T, s *scene) {
		admin := s.know(cyd, right.Held{Role: right.GroupAdmin, Group: "echo"})
		at := channeltest.DirectOf(bob)
		s.wire(at, "echo")
		s.lives()
		s.tells(bob, "one")
		if n := len(s.texts(olgaDM)); n > 0 {
			t.Errorf("the owner is shown %v", s.texts(olgaDM))
		}
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			_, err := tx.Unlink(ctx, person.Identity{Platform: chatName, Account: cyd.Account})
			if err == nil {
				_, err = tx.Revoke(ctx, admin, right.Held{Role: right.GroupAdmin, Group: "echo"})
			}
			return err
		})

		places := channels.Places{Channels: s.channels}
		of := s.questions(at)[0].ID
		if q, err := places.Question(t.Context(), of); err != nil || q.Outcome != question.Waiting || q.Kind != question.Sender {
			t.Errorf("it is %+v, %v", q, err)
		}
		if told, err := places.Answer(t.Context(), of, channels.Allow, s.By()); err != nil || told == "" {
			t.Errorf("told %q, %v", told, err)
		}
		same(t, "heard", s.heard(), "echo: one")
	})
}
