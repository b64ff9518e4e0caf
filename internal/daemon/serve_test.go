package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/keeper"
	"sallyport/internal/door/socket"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/port/target"

	"sallyport/internal/drive/control"
	"sallyport/internal/drive/dispatch"
)

// A daemon that a command started goes when there is nothing to do. One that serves a home stays until it is told to end.
func TestOnlyAServedHomeStaysWhileThereIsNothingToDo(t *testing.T) {
	for line, want := range map[*keeper.Line]error{nil: errIdle, {}: errAsked} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			d := &Daemon{Options: Options{Line: line}, log: slog.New(slog.DiscardHandler), control: control.New(h.Parts)}
			d.chats = dispatch.New(dispatch.Parts{Ledger: d.control.Ledger})
			d.channels = channelsOf(d)
			d.server = socket.New(socket.Options{Log: d.log})
			d.targets = targets{host: target.Host{Ops: disk.Ops{}, Changes: t.TempDir()}}
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
