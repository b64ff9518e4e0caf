package channel

import (
	"context"
	"time"
)

// givePause is how long the first wait is after an event was not taken, and giveMax the longest.
const (
	givePause = 50 * time.Millisecond
	giveMax   = 5 * time.Second
)

// Give hands an event over until it is taken. It returns an error only when ctx ends before.
func (l Listener) Give(ctx context.Context, e Event) error {
	for pause := givePause; ; pause = min(2*pause, giveMax) {
		if l.Take(ctx, e) == nil {
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
