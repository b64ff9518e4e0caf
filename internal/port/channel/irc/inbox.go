package irc

import (
	"context"
	"sync"

	"sallyport/internal/port/channel"
)

const (
	queueMax = 512 // events that wait to be taken
	lostMax  = 100 // places that are remembered by name of which something was dropped
)

// inbox is what was heard, and waits until the host takes it.
type inbox struct {
	queue chan item
	begun chan struct{} // closed when the host knows that we are ready

	mu   sync.Mutex
	lost map[string]struct{} // places of which something was dropped; "" = of any
}

// item is an event that waits to be taken; or, without one, a place of which something is lost.
type item struct {
	event *channel.Event
	lost  string
}

// handOver gives events to the host once we are ready, each until it was taken, and says what was dropped. What waits when the session is
// over is still handed over, but only once: the next session says that something is lost.
func (i *inbox) handOver(ctx context.Context, l channel.Listener, over <-chan struct{}) error {
	select {
	case <-i.begun:
	case <-over:
		return nil
	}
	for next := range i.queue {
		if next.event == nil {
			l.Lost(ctx, next.lost)
			continue
		}
		if l.Give(ctx, *next.event) != nil {
			return nil
		}
		if len(i.queue) == 0 {
			for place := range i.dropped() {
				l.Lost(ctx, place)
			}
		}
	}
	return nil
}

// put adds to what waits; if too much does, it is dropped, and that is said later.
func (i *inbox) put(what item, place string) {
	select {
	case i.queue <- what:
		return
	default:
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.lost) >= lostMax {
		place = ""
	}
	i.lost[place] = struct{}{}
}

// dropped are the places of which something was dropped since.
func (i *inbox) dropped() map[string]struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.lost
	i.lost = map[string]struct{}{}
	if _, any := all[""]; any {
		return map[string]struct{}{"": {}}
	}
	return all
}
