package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/chat/message"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/store"
)

// breaks has moving a message fail for as long as a test says so, after what its transaction did before.
func (s *scene) breaks(bad func(message.In) bool) {
	s.Parts.DB = &breaking{s.Parts.DB, bad}
}

// breaking is a store that cannot move messages at times.
type breaking struct {
	store.DB
	bad func(message.In) bool
}

func (b *breaking) InTx(ctx context.Context, do func(store.Tx) error) error {
	return b.DB.InTx(ctx, func(tx store.Tx) error { return do(brokenTx{tx, b}) })
}

type brokenTx struct {
	store.Tx
	of *breaking
}

func (t brokenTx) MoveIn(ctx context.Context, from message.Status, fence int64, m message.In) error {
	if t.of.bad(m) {
		return errors.New("the disk is full")
	}
	return t.Tx.MoveIn(ctx, from, fence, m)
}

// TestATurnWhoseEndCannotBeWrittenIsTakenAgain holds that its messages are answered once, without a new daemon, when the disk has room
// again, and that no try counts.
func TestATurnWhoseEndCannotBeWrittenIsTakenAgain(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var full atomic.Bool
		s.breaks(func(message.In) bool { return full.Load() })
		works, turns := s.turn, 0
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			turns++
			full.Store(turns == 1)
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		time.Sleep(time.Hour)
		s.is(m.ID, message.Processing)
		full.Store(false)
		time.Sleep(time.Minute)
		if row := s.is(m.ID, message.Completed); row.Tries != 0 || row.Turn != 2 || turns != 2 {
			t.Errorf("after %d turns: %+v", turns, row)
		}
		same(t, "sent", s.sent(m.Chat), "heard: hello")
	})
}

// TestAHostThatEndsWhileItCannotWriteLeavesTheTurnToTheNext holds that it waits for no disk.
func TestAHostThatEndsWhileItCannotWriteLeavesTheTurnToTheNext(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var full atomic.Bool
		s.breaks(func(message.In) bool { return full.Load() })
		works := s.turn
		s.turn = func(context.Context, string, *stage) (string, error) { full.Store(true); return "lost", nil }
		d, end := s.lives()
		m := s.say(d, "echo", "hello")
		time.Sleep(time.Hour)
		end()
		s.is(m.ID, message.Processing)
		full.Store(false)
		s.turn = works
		s.lives()
		time.Sleep(time.Minute)
		s.is(m.ID, message.Completed)
		same(t, "sent", s.sent(m.Chat), "heard: hello")
	})
}

// TestATurnWhoseEndCanNeverBeWrittenIsGivenUp holds that no agent is asked the same for ever.
func TestATurnWhoseEndCanNeverBeWrittenIsGivenUp(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		s.breaks(func(m message.In) bool { return m.Status == message.Completed })
		works, turns := s.turn, 0
		s.turn = func(ctx context.Context, words string, st *stage) (string, error) {
			turns++
			return works(ctx, words, st)
		}
		d, _ := s.lives()
		m := s.say(d, "echo", "hello")
		time.Sleep(time.Hour)
		if row := s.is(m.ID, message.Dead); row.Tries != 5 || turns != 6 {
			t.Errorf("after %d turns: %+v", turns, row)
		}
		if sent := s.sent(m.Chat); len(sent) != 1 || !strings.HasPrefix(sent[0], "notice: Your message was not answered: 5 tries have failed") {
			t.Errorf("sent %q", sent)
		}
	})
}

// TestWhatCannotJoinATurnYetEndsNone holds that words which come in a turn are given once the disk has room, and the turn goes on.
func TestWhatCannotJoinATurnYetEndsNone(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		var full atomic.Bool
		s.breaks(func(message.In) bool { return full.Load() })
		told := s.takes()
		s.turn = func(_ context.Context, words string, _ *stage) (string, error) {
			full.Store(true)
			return "heard: " + drivetest.Last(words) + ", then " + drivetest.Last(<-told), nil
		}
		d, _ := s.lives()
		work := s.say(d, "echo", "work")
		more := s.say(d, "echo", "more")
		s.is(more.ID, message.Pending)
		s.is(work.ID, message.Processing)
		full.Store(false)
		time.Sleep(time.Minute)
		for _, m := range []message.In{work, more} {
			if row := s.is(m.ID, message.Completed); row.Turn != 1 || row.Tries != 0 {
				t.Errorf("%+v", row)
			}
		}
		same(t, "sent", s.sent(work.Chat), "heard: work, then more")
	})
}
