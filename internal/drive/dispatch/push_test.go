package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
)

// takes has agents take words in the middle of a turn: what they are told there comes out of the channel.
func (s *scene) takes() <-chan string {
	told := make(chan string, 10)
	s.steer = func(words string) bool { told <- words; return true }
	return told
}

// TestWhatComesInATurnGoesIntoIt holds CH-082: it is given at once, is answered with the turn, and once.
func TestWhatComesInATurnGoesIntoIt(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		told, gate := s.takes(), make(chan struct{})
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			for said := range told {
				if words += said; strings.Contains(said, ">stop<") {
					break
				}
			}
			<-gate
			return strings.Join([]string{drivetest.Last(words[:strings.Index(words, "</messages>")]), drivetest.Last(words)}, ", then "), nil
		}
		d, _ := s.lives()
		work := s.say(d, "echo", "work")
		more := s.say(d, "echo", "and that")
		s.is(more.ID, message.Processing)
		stop := s.say(d, "echo", "stop")
		for _, m := range []message.In{work, more, stop} {
			if row := s.is(m.ID, message.Processing); row.Turn != 1 {
				t.Errorf("%q is of turn %d", row.Text, row.Turn)
			}
		}
		close(gate)
		for _, m := range []message.In{work, more, stop} {
			if row := s.is(m.ID, message.Completed); row.Turn != 1 || row.Tries != 0 {
				t.Errorf("%+v", row)
			}
		}
		same(t, "sent", s.sent(work.Chat), "work, then stop")
	})
}

// TestWhatAnAgentDoesNotTakeInATurnIsTheNextTurns holds the other side: it is as if it had come then, and what it has done is its own.
func TestWhatAnAgentDoesNotTakeInATurnIsTheNextTurns(t *testing.T) {
	var asked atomic.Int32
	for name, steer := range map[string]func(string) bool{"that takes none": nil, "that takes none now": func(string) bool { asked.Add(1); return false }} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				s.steer = steer
				s.turn = func(_ context.Context, words string, st *stage) (string, error) {
					time.Sleep(30 * time.Second)
					_, err := st.ask(tool.SendMessage, tool.Message{Text: "I look"})
					return "heard: " + drivetest.Last(words), err
				}
				d, _ := s.lives()
				first := s.say(d, "echo", "one")
				time.Sleep(10 * time.Second)
				second := s.say(d, "echo", "two")
				time.Sleep(10 * time.Second)
				s.is(second.ID, message.Pending)
				time.Sleep(time.Minute)
				s.is(first.ID, message.Completed)
				if row := s.is(second.ID, message.Completed); row.Turn != 2 || row.Tries != 0 {
					t.Errorf("%+v", row)
				}
				same(t, "sent", s.sent(first.Chat), "I look", "heard: one", "I look", "heard: two")
			})
		})
	}
	if n := asked.Load(); n != 3 { // at once, and 5 and 15 seconds later
		t.Errorf("an agent that takes no words is given them %d times", n)
	}
}

// TestWhatATurnOnlyCountsIsPushedIntoItNever holds CH-014b beside CH-082: what an agent was told of as a number is not told as words too, nor
// does it keep new words out of the turn. Whether the agent takes those or not, the turn comes to its end, and nothing is left in process.
func TestWhatATurnOnlyCountsIsPushedIntoItNever(t *testing.T) {
	for name, c := range map[string]struct{ takes, wake bool }{
		"words, taken":       {true, true},
		"words, not taken":   {false, true},
		"context, taken":     {true, false},
		"context, not taken": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, []string{"echo"}, func(t *testing.T, s *scene) {
				gate, open := make(chan struct{}), false
				var pushed []string
				s.steer = func(words string) bool {
					pushed = append(pushed, words)
					return open
				}
				s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
					<-gate
					return "heard: " + drivetest.Last(words), nil
				}
				d, _ := s.lives()
				first := s.say(d, "echo", "first")
				var early []message.In // which wait for the next turn: three more than it shows
				for n := range 13 {
					m := message.In{ID: id.NewMessage(), Chat: first.Chat, Kind: prompt.Chat, Trigger: c.wake || n == 12, Sender: "ann",
						Text: fmt.Sprint("early ", n), At: time.Now(), Due: time.Now(), Status: message.Pending}
					s.Tx(func(ctx context.Context, tx store.Tx) (err error) {
						m, err = tx.PutIn(ctx, m)
						return err
					})
					early = append(early, m)
				}
				gate <- struct{}{}
				synctest.Wait()
				pushed, open = nil, c.takes
				more := s.say(d, "echo", "more")
				if len(pushed) != 1 || strings.Contains(pushed[0], "early") || strings.Contains(pushed[0], "<folded") || drivetest.Last(pushed[0]) != "more" {
					t.Errorf("pushed into the turn: %q", pushed)
				}
				close(gate)
				for n, m := range early {
					s.is(m.ID, map[bool]message.Status{true: message.Folded, false: message.Completed}[n < 3])
				}
				want := []string{"heard: first", "heard: early 12"}
				if !c.takes {
					want = append(want, "heard: more")
				}
				if row := s.is(more.ID, message.Completed); row.Turn != len(want) || row.Tries != 0 {
					t.Errorf("%+v", row)
				}
				same(t, "sent", s.sent(more.Chat), want...)
			})
		})
	}
}

// TestATurnThatFailsGivesBackWhatWasPushedIntoIt holds that a try counts for whose turn it was alone, and that both are answered together.
func TestATurnThatFailsGivesBackWhatWasPushedIntoIt(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		told, tries := s.takes(), 0
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			if tries++; tries == 1 {
				<-told
				return "", errors.New("no model")
			}
			return "heard: " + drivetest.Last(words), nil
		}
		d, _ := s.lives()
		work := s.say(d, "echo", "work")
		more := s.say(d, "echo", "more")
		if row := s.is(work.ID, message.Completed); row.Tries != 1 || row.Turn != 2 {
			t.Errorf("%+v", row)
		}
		if row := s.is(more.ID, message.Completed); row.Tries != 0 || row.Turn != 2 {
			t.Errorf("%+v", row)
		}
		same(t, "sent", s.sent(work.Chat), "heard: more")
	})
}

// TestAHostThatEndsWithWordsInATurnLosesNone is CH-030 of what was pushed: the turn is taken again with all of it.
func TestAHostThatEndsWithWordsInATurnLosesNone(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		works := s.turn
		told := s.takes()
		s.turn = func(ctx context.Context, _ string, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		d, end := s.lives()
		work := s.say(d, "echo", "work")
		more := s.say(d, "echo", "more")
		<-told
		s.is(more.ID, message.Processing)
		end()
		for _, m := range []message.In{work, more} {
			if row := s.is(m.ID, message.Pending); row.Tries != 0 {
				t.Errorf("%+v", row)
			}
		}

		// And as one that was killed leaves them.
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			for _, m := range []message.In{work, more} {
				row, err := tx.In(ctx, m.ID)
				if err != nil {
					return err
				}
				row.Status = message.Processing
				if err := tx.MoveIn(ctx, message.Pending, row.Fence, row); err != nil {
					return err
				}
			}
			return nil
		})
		s.turn = works
		s.lives()
		time.Sleep(5 * time.Second)
		s.is(work.ID, message.Completed)
		s.is(more.ID, message.Completed)
		same(t, "sent", s.sent(work.Chat), "heard: more")
	})
}

// TestWhatFailedTogetherIsPushedIntoNoTurn holds that a message which is alone in its turn stays so, and that order holds.
func TestWhatFailedTogetherIsPushedIntoNoTurn(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.steer = func(words string) bool {
			t.Errorf("pushed: %q", words)
			return true
		}
		tries := 0
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			if tries++; tries <= 2 {
				return "", errors.New("no model")
			}
			time.Sleep(30 * time.Second)
			return "heard: " + drivetest.Last(words), nil
		}
		d, _ := s.lives()
		first := s.say(d, "echo", "one")
		time.Sleep(20 * time.Second) // its third try runs
		if row := s.is(first.ID, message.Processing); row.Tries != 2 {
			t.Fatalf("%+v", row)
		}
		second := s.say(d, "echo", "two")
		s.is(second.ID, message.Pending)
		time.Sleep(2 * time.Minute)
		same(t, "sent", s.sent(first.Chat), "heard: one", "heard: two")
	})
}

// TestAPersonEndsASessionWithWordsInItsTurn holds that what its agent has taken is ended with it.
func TestAPersonEndsASessionWithWordsInItsTurn(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		told := s.takes()
		s.turn = func(ctx context.Context, _ string, _ *stage) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		d, _ := s.lives()
		work := s.say(d, "echo", "work")
		more := s.say(d, "echo", "more")
		<-told
		if stopped, err := d.Stop(gittest.Context(t), work.Chat, s.By()); err != nil || !stopped {
			t.Errorf("%t %v", stopped, err)
		}
		for _, m := range []message.In{work, more} {
			if row := s.is(m.ID, message.Dead); row.Reason != "a person ended the session" {
				t.Errorf("%+v", row)
			}
		}
	})
}

// TestATurnThatLosesAMessageGivesBackTheRest holds that one which moved on while its turn was under way leaves no other in process: a turn that
// cannot be written as it is begins anew with what is left.
func TestATurnThatLosesAMessageGivesBackTheRest(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		told, gate := s.takes(), make(chan struct{})
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			<-gate
			return "heard: " + drivetest.Last(words), nil
		}
		d, _ := s.lives()
		work := s.say(d, "echo", "work")
		more := s.say(d, "echo", "more")
		<-told
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			row, err := tx.In(ctx, more.ID)
			if err != nil {
				return err
			}
			row.Status, row.Reason = message.Dead, "moved"
			return tx.MoveIn(ctx, message.Processing, row.Fence, row)
		})
		close(gate)
		time.Sleep(5 * time.Second)
		if row := s.is(work.ID, message.Completed); row.Turn != 2 || row.Tries != 0 {
			t.Errorf("%+v", row)
		}
		s.is(more.ID, message.Dead)
		same(t, "sent", s.sent(work.Chat), "heard: work")
	})
}
