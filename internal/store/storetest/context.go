package storetest

import (
	"context"
	"errors"
	"testing"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/store"
)

// testContext holds that what others said long ago is counted and folded together, and nothing else with it.
func testContext(t *testing.T, s *suite) {
	c, other := s.talks("1000/echo", "echo"), s.talks("1001/echo", "echo")
	fills := func(m *message.In) { m.Trigger = false }
	old := s.hears(c.ID, "old", fills)
	s.hears(c.ID, "older, too", fills)
	stays := []message.In{
		s.hears(c.ID, "wakes", nil),
		s.hears(c.ID, "the host's", func(m *message.In) { m.Trigger, m.Kind = false, prompt.System }),
		s.hears(c.ID, "in process", func(m *message.In) { m.Trigger, m.Status = false, message.Processing }),
		s.hears(other.ID, "of another", fills),
	}
	first := s.hears(c.ID, "the first that is shown", fills)
	stays = append(stays, first)
	s.do(func(ctx context.Context, tx store.Tx) error {
		n, err := tx.CountContext(ctx, c.ID, first.Seq)
		s.same(n, 2)
		err2 := tx.FoldContext(ctx, c.ID, first.Seq, message.Folding{Turn: 3, Fence: 5, At: at(9)})
		left, err3 := tx.CountContext(ctx, c.ID, first.Seq)
		s.same(left, 0)
		got, err4 := tx.In(ctx, old.ID)
		end := at(9)
		old.Status, old.Turn, old.Fence, old.Ended = message.Folded, 3, 5, &end
		s.same(got, old)
		for _, m := range stays {
			got, err := tx.In(ctx, m.ID)
			s.same(got, m)
			if err != nil {
				return err
			}
		}
		return errors.Join(err, err2, err3, err4)
	})
}

// testTaken holds that the chat of a thread takes over what waits in its group's chat of no thread, and nothing else.
func testTaken(t *testing.T, s *suite) {
	c, other := s.talks("room", "echo"), s.talks("room", "notes")
	fills := func(m *message.In) { m.Trigger = false }
	waits := s.hears(c.ID, "before", fills)
	stays := []message.In{
		s.hears(c.ID, "wakes", nil),
		s.hears(c.ID, "the host's", func(m *message.In) { m.Trigger, m.Kind = false, prompt.System }),
		s.hears(c.ID, "folded", func(m *message.In) { m.Trigger, m.Status = false, message.Folded }),
		s.hears(other.ID, "of another group", fills),
		s.hears(s.talks("stream", "echo").ID, "of another place", fills),
	}
	s.do(func(ctx context.Context, tx store.Tx) error {
		thread := c
		thread.ID, thread.Thread = id.NewChat(), "t1"
		thread, err := tx.PutChat(ctx, thread)
		if err != nil {
			return err
		}
		err = tx.TakeContext(ctx, thread)
		waits.Chat = thread.ID
		for _, m := range append(stays, waits) {
			got, wrong := tx.In(ctx, m.ID)
			s.same(got, m)
			err = errors.Join(err, wrong)
		}
		return err
	})
}
