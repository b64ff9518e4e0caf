package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

// heard is what one who watches was told of the rows.
type heard struct {
	ins  map[id.Message]message.In // as they were told last
	outs []int64
}

// hear takes lines, and says what is wrong with them: what comes twice, out of order, or older than what was told.
func (h *heard) hear(lines []dispatch.Line) error {
	for _, l := range lines {
		switch {
		case l.In != nil:
			if was, ok := h.ins[l.In.ID]; ok && step(*l.In) <= step(was) {
				return fmt.Errorf("%s is told as %s of turn %d after %s of turn %d", l.In.ID, l.In.Status, l.In.Turn, was.Status, was.Turn)
			}
			h.ins[l.In.ID] = *l.In
		case l.Out != nil:
			if n := len(h.outs); n > 0 && h.outs[n-1] >= l.Out.Seq {
				return fmt.Errorf("what was sent as %d is told after %d", l.Out.Seq, h.outs[n-1])
			}
			h.outs = append(h.outs, l.Out.Seq)
		}
	}
	return nil
}

// step is how far the life of a message has come that is tried once in vain.
func step(m message.In) int {
	return slices.Index([]string{"0pending", "1processing", "1pending", "2processing", "2completed"}, fmt.Sprint(m.Turn, m.Status))
}

// put stores a message that wakes nobody.
func (s *scene) put(chat id.Chat) (m message.In, err error) {
	at := ledger.Now()
	m = message.In{ID: id.NewMessage(), Chat: chat, Kind: prompt.Chat, Text: "x", At: at, Status: message.Pending, Due: at}
	return m, s.Parts.DB.InTx(context.Background(), func(tx store.Tx) (err error) { m, err = tx.PutIn(context.Background(), m); return err })
}

// move takes a message a step further in its life, and says so; giving it back is done once before, and undone.
func (s *scene) move(m *message.In, to message.Status, turn int) error {
	ctx, undone := context.Background(), errors.New("undone")
	was, at := m.Status, ledger.Now()
	if m.Status, m.Turn = to, turn; to == message.Pending {
		m.Tries++
	} else if to == message.Completed {
		m.Ended = &at
	}
	write := func(tx store.Tx) error {
		_, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: m.Chat, Lane: message.Notice, Turn: turn, Text: "y", At: at})
		return errors.Join(err, tx.MoveIn(ctx, was, 0, *m))
	}
	if to == message.Pending {
		if err := s.Parts.DB.InTx(ctx, func(tx store.Tx) error { return errors.Join(write(tx), undone) }); !errors.Is(err, undone) {
			return err
		}
	}
	return s.Parts.DB.InTx(ctx, write)
}

// lead writes the life of a message.
func (s *scene) lead(chat id.Chat) error {
	m, err := s.put(chat)
	for _, to := range []message.Status{message.Processing, message.Pending, message.Processing, message.Completed} {
		err = errors.Join(err, s.move(&m, to, m.Tries+1))
	}
	return err
}

// TestWhoWatchesHearsOfEachCommitOnce holds it whoever writes at once with whom, whenever who watches has come, and however slow they are.
func TestWhoWatchesHearsOfEachCommitOnce(t *testing.T) {
	const writers, lives = 8, 26 // more events than a reader may be behind
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var watched sync.WaitGroup
		var all []*heard
		late := make(chan struct{})
		watch := func(slow bool) {
			h := &heard{ins: map[id.Message]message.In{}}
			all = append(all, h)
			first := true
			watched.Go(func() {
				err := d.Watch(ctx, chat.ID, 1000, func(lines []dispatch.Line) error {
					if slow && first {
						<-late
					}
					first = false
					return h.hear(lines)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}

		watch(false)
		watch(true)
		var wrote sync.WaitGroup
		for range writers {
			wrote.Go(func() {
				for range lives {
					if err := s.lead(chat.ID); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for range 10 { // while they write
			watch(false)
			if err := s.lead(chat.ID); err != nil {
				t.Error(err)
			}
		}
		wrote.Wait()
		close(late)
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		watched.Wait()

		rows, outs := map[id.Message]message.In{}, []int64(nil)
		s.Tx(func(ctx context.Context, tx store.Tx) error {
			ins, err := tx.Ins(ctx, message.Filter{Chat: chat.ID})
			for _, m := range ins {
				rows[m.ID] = m
			}
			sent, err2 := tx.Outs(ctx, chat.ID, 0, 0, 10_000)
			for _, o := range sent {
				outs = append(outs, o.Seq)
			}
			return errors.Join(err, err2)
		})
		for i, h := range all {
			same := func(a, b message.In) bool { return a.Status == b.Status && a.Turn == b.Turn && a.Seq == b.Seq }
			if !maps.EqualFunc(h.ins, rows, same) {
				t.Errorf("watcher %d was told of %d messages, there are %d, or of another end", i, len(h.ins), len(rows))
			}
			// Of what was sent before they came, the newest thousand.
			if n := len(h.outs); n == 0 || i < 2 && n != len(outs) || !slices.Equal(h.outs, outs[len(outs)-n:]) {
				t.Errorf("watcher %d was told of %d that were sent, there are %d", i, n, len(outs))
			}
		}
	})
}

// TestWhoComesAmongCommitsHearsOfEachOnce holds it for one whose last look at the rows shares a commit with what is written before and
// after it.
func TestWhoComesAmongCommitsHearsOfEachOnce(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		ctx, cancel := context.WithCancel(t.Context())
		m, err := s.put(chat.ID)
		if err != nil {
			t.Fatal(err)
		}

		// While the writer is held these wait for their turns, in this order: a step, who comes, a step.
		hold := make(chan struct{})
		var all sync.WaitGroup
		begin := func(do func() error) {
			all.Go(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		h := &heard{ins: map[id.Message]message.In{}}
		step := func(status message.Status, turn, tries int) func() error {
			from, to := m.Status, m
			to.Status, to.Turn, to.Tries = status, turn, tries
			m = to
			return func() error {
				return s.Parts.DB.InTx(ctx, func(tx store.Tx) error { return tx.MoveIn(ctx, from, 0, to) })
			}
		}
		begin(func() error { return s.Parts.DB.InTx(ctx, func(store.Tx) error { <-hold; return nil }) })
		begin(step(message.Processing, 1, 0))
		begin(step(message.Pending, 1, 1))
		begin(func() error { return d.Watch(ctx, chat.ID, 10, h.hear) })
		begin(step(message.Processing, 2, 1))
		close(hold)
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		all.Wait()
		if is := h.ins[m.ID]; is.Status != m.Status || is.Turn != m.Turn {
			t.Errorf("told at the end: %s of turn %d", is.Status, is.Turn)
		}
	})
}

// counting counts who reads the database.
type counting struct {
	store.DB
	reads atomic.Int64
}

func (c *counting) Read(ctx context.Context, do func(store.Tx) error) error {
	c.reads.Add(1)
	return c.DB.Read(ctx, do)
}

// TestWhoIsUpToDateReadsNothing holds that what happens in a chat costs no look at the rows, however many watch; and that many are told
// of much together, each thing written once for all of them.
func TestWhoIsUpToDateReadsNothing(t *testing.T) {
	play(t, []string{"echo"}, func(t *testing.T, s *scene) {
		db := &counting{DB: s.Parts.DB}
		s.Parts.DB = db
		d, _ := s.lives()
		chat := s.chatWith(d, "echo")
		ctx, cancel := context.WithCancel(t.Context())
		var watched sync.WaitGroup
		var pieces, lines, written atomic.Int64
		for range 100 {
			watched.Go(func() {
				_ = d.Watch(ctx, chat.ID, 10, func(l []dispatch.Line) error { // it ends with ctx
					pieces.Add(1)
					lines.Add(int64(len(l)))
					for _, line := range l {
						if line.Kind == dispatch.LineReady {
							continue
						}
						_, err := line.Once(func(l dispatch.Line) ([]byte, error) { written.Add(1); return []byte(l.Kind), nil })
						if err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
		synctest.Wait()
		before, ready := db.reads.Load(), lines.Load()
		put := func() {
			s.Tx(func(ctx context.Context, tx store.Tx) error {
				_, err := tx.PutOut(ctx, message.Out{ID: id.NewOut(), Chat: chat.ID, Lane: message.Notice, Text: "x", At: ledger.Now()})
				return err
			})
		}
		for range 10 {
			put()
			synctest.Wait()
		}
		if n := db.reads.Load() - before; n > 0 || lines.Load()-ready != 1000 || pieces.Load() != 1100 {
			t.Errorf("10 commits were told as %d lines in %d pieces, with %d reads", lines.Load()-ready, pieces.Load(), n)
		}

		for range 200 {
			time.Sleep(time.Millisecond)
			put()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := pieces.Load(); n > 5000 || lines.Load()-ready != 21_000 {
			t.Errorf("210 commits were told as %d lines in %d pieces", lines.Load()-ready, n)
		}
		if n := written.Load(); n != 210 {
			t.Errorf("210 lines were written %d times for all who are told them", n)
		}
		cancel()
		watched.Wait()
	})
}
