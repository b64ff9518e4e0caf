package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/keeper"
	"sallyport/internal/door/socket"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/target"

	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
)

// A daemon that a command started goes when there is nothing to do. One that serves a home stays until it is told to end.
func TestOnlyAServedHomeStaysWhileThereIsNothingToDo(t *testing.T) {
	for line, want := range map[*keeper.Line]error{nil: errIdle, {}: errAsked} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			d := idling(t, control.New(h.Parts))
			d.Line = line
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go d.watchIdle(ctx, cancel)

			time.Sleep(2 * IdleAfter)
			synctest.Wait()
			cancel(errAsked)
			if cause := context.Cause(ctx); !errors.Is(cause, want) {
				t.Errorf("kept %t: it ended with %v", line != nil, cause)
			}
		})
	}
}

// idling is as much of a daemon as watches whether there is anything to do.
func idling(t *testing.T, c *control.Controller) *Daemon {
	t.Helper()
	d := &Daemon{log: slog.New(slog.DiscardHandler), control: c, giveBack: func() {}}
	d.chats = dispatch.New(dispatch.Parts{Ledger: c.Ledger})
	d.channels = channelsOf(d)
	d.server = socket.New(socket.Options{Log: d.log})
	d.targets = targets{host: target.Host{Ops: disk.Ops{}, Changes: t.TempDir()}}
	return d
}

// To give memory back takes a moment of every thread, so that nobody may be waiting for one.
func TestADaemonGivesMemoryBackEachMinuteInWhichNoAgentWorks(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		done := make(chan struct{})
		h.Cage.Program = func(_ sandbox.Spec, killed <-chan struct{}) int {
			select {
			case <-done:
			case <-killed:
			}
			return 0
		}
		c, end := h.Daemon()
		defer end()
		d := idling(t, c)
		d.Line = &keeper.Line{}
		var given atomic.Int64
		d.giveBack = func() { given.Add(1) }
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		go d.watchIdle(ctx, cancel)

		during := func(minutes int) int64 {
			before := given.Load()
			time.Sleep(time.Duration(minutes) * time.Minute)
			synctest.Wait()
			return given.Load() - before
		}
		if n := during(3); n != 3 {
			t.Errorf("in three quiet minutes memory was given back %d times", n)
		}
		h.Ask(c)
		if n := during(3); n != 0 || c.Busy() == 0 {
			t.Errorf("while %d agents worked memory was given back %d times", c.Busy(), n)
		}
		close(done)
		synctest.Wait()
		if n := during(3); n != 3 || c.Busy() > 0 {
			t.Errorf("in three minutes after it memory was given back %d times", n)
		}
	})
}
