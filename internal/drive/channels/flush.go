package channels

import (
	"context"
	"time"

	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/store"
)

// How patient a flush is.
const (
	flushMax  = 10 * time.Second      // until what is due has left
	underWay  = 5 * time.Second       // more, until what had begun to leave has
	flushPoll = 20 * time.Millisecond // how often it looks
)

// Flush has what is due leave before this host goes, for flushMax at the most. From then on nothing begins to leave until resume is called:
// what is left over the next host sends, and what was sent by then is written down as sent. What the platform has not answered within
// underWay more is sent again, as after any end of a host. It does not wait for what waits for its platform, or for a later try.
func (c *Channels) Flush(ctx context.Context) (resume func()) {
	until(ctx, flushMax, func() bool { return !carrier{c}.leaving(ctx) && carrier{c}.busy() == 0 })
	c.shut.Store(true)
	until(ctx, underWay, func() bool { return carrier{c}.busy() == 0 })
	return func() {
		c.shut.Store(false)
		c.Poke()
	}
}

// until waits until it is so, for so long at the most.
func until(ctx context.Context, most time.Duration, so func() bool) {
	poll := time.NewTicker(flushPoll)
	defer poll.Stop()
	patience := time.NewTimer(most)
	defer patience.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			return
		case <-poll.C:
		}
	}
}

// leaving reports whether something is due that its channel takes now.
func (c carrier) leaving(ctx context.Context) bool {
	var due []message.Delivery
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		due, err = tx.DueDeliveries(ctx, ledger.Now())
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Error("what is to be delivered cannot be found", "error", err)
	}
	for _, d := range due {
		if l := c.line(d.Channel); l != nil && l.driver != nil && l.open() {
			return true
		}
	}
	return false
}

// open reports whether anything can be sent now.
func (l *line) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takes()
}

// busy is how many lanes are at work.
func (c carrier) busy() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		l.mu.Lock()
		n += len(l.lanes)
		l.mu.Unlock()
	}
	return n
}
