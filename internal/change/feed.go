package change

import (
	"context"
	"sync"

	"sallyport/internal/id"
	"sallyport/internal/store"
	"sallyport/internal/trial"
)

// queueMax is how many notices a slow reader may be behind before it misses some.
const queueMax = 256

// feed hands notices to who watches. It never blocks who publishes.
type feed struct {
	clean func(string) string // takes secrets out of a text

	mu   sync.Mutex
	seq  int64
	subs map[*subscription]struct{}
}

type subscription struct {
	change id.Change
	queue  []Notice
	ready  chan struct{}
}

func newFeed(clean func(string) string) *feed {
	return &feed{clean: clean, subs: map[*subscription]struct{}{}}
}

// publish queues n for everybody who watches its change. What is no state is dropped for
// a reader who is too far behind.
func (f *feed) publish(n Notice) {
	if n.Kind != "output" { // a transcript's lines are clean
		n.Text = f.clean(n.Text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	n.Seq = f.seq
	for s := range f.subs {
		if s.change != n.Change || len(s.queue) >= queueMax && n.Kind != "state" {
			continue
		}
		s.queue = append(s.queue, n)
		select {
		case s.ready <- struct{}{}:
		default:
		}
	}
}

// watched reports whether anybody watches a change.
func (f *feed) watched(change id.Change) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		if s.change == change {
			return true
		}
	}
	return false
}

func (f *feed) subscribe(change id.Change) *subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &subscription{change: change, ready: make(chan struct{}, 1)}
	f.subs[s] = struct{}{}
	return s
}

func (f *feed) unsubscribe(s *subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, s)
}

// next returns what has been queued, waiting for at least one; nil when ctx ends.
func (f *feed) next(ctx context.Context, s *subscription) []Notice {
	for {
		f.mu.Lock()
		queue := s.queue
		s.queue = nil
		f.mu.Unlock()
		if len(queue) > 0 {
			return queue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.ready:
		}
	}
}

// Watch sends the present state, then notices until ctx ends or nothing more happens by itself.
func (c *Controller) Watch(ctx context.Context, change id.Change) (<-chan Notice, error) {
	sub := c.feed.subscribe(change) // before reading, so that nothing falls between
	first, err := c.first(ctx, change)
	if err != nil {
		c.feed.unsubscribe(sub)
		return nil, err
	}
	out := make(chan Notice)
	go func() { // owned by ctx: it ends with it, or with the change
		defer close(out)
		defer c.feed.unsubscribe(sub)
		asked := false
		for queue := first; queue != nil; queue = c.feed.next(ctx, sub) {
			for _, n := range queue {
				asks := n.Kind == "trial" && n.State == InTrial
				if asks && asked {
					continue
				}
				select {
				case <-ctx.Done():
					return
				case out <- n:
				}
				if asks {
					asked = true
					c.heard(change)
				}
				if n.Kind == "state" && !n.State.Due() && n.State != Paused {
					return
				}
			}
		}
	}()
	return out, nil
}

// first is what somebody who begins to watch is told: the present state, and message 1 while its answer is waited for.
func (c *Controller) first(ctx context.Context, change id.Change) (all []Notice, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		row, err := tx.Change(ctx, change)
		if err != nil {
			return err
		}
		all = []Notice{{Change: change, At: row.Moved, Kind: "state", State: State(row.State), Text: row.Reason}}
		if t, ok, err := tx.Trial(ctx, change); err != nil {
			return err
		} else if ok && State(row.State) == InTrial && t.Handshake == trial.Message1Sent {
			all = append(all, message1(change))
		}
		return nil
	})
	return all, err
}
