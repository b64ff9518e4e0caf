package channeltest

import (
	"context"
	"testing"

	"sallyport/internal/port/channel"
)

// Heard is what a host hears of a driver.
type Heard struct {
	Driver channel.Driver
	Ready  chan channel.Self
	Events chan channel.Event
	Lost   chan string
	Moved  chan string
	Done   chan error // the end of the session
	Cancel context.CancelFunc
}

// Listen listens until the test ends; take may refuse.
func Listen(t *testing.T, d channel.Driver, cursor string, take func(channel.Event) error) *Heard {
	t.Helper()
	h := &Heard{
		Driver: d, Ready: make(chan channel.Self, 10), Events: make(chan channel.Event, 100), Lost: make(chan string, 100),
		Moved: make(chan string, 100), Done: make(chan error, 1),
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.Cancel = cancel
	go func() {
		h.Done <- d.Run(ctx, channel.Listener{
			Cursor: cursor,
			Ready:  func(s channel.Self) { h.Ready <- s },
			Take: func(_ context.Context, e channel.Event) error {
				if take != nil {
					if err := take(e); err != nil {
						return err
					}
				}
				h.Events <- e
				return nil
			},
			Move: func(_ context.Context, cursor string) error { h.Moved <- cursor; return nil },
			Lost: func(_ context.Context, place string) { h.Lost <- place },
		})
	}()
	t.Cleanup(cancel)
	return h
}
