package supervise

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
)

// healthEvery is how often a watch is asked to prove that it still hears (SV-092).
const healthEvery = time.Minute

// listen begins to watch the workspace, after a test that the kernel tells of writes. Without a watch
// the workspace is looked at by the clock alone: events only say when to look (SV-069).
func (s *supervisor) listen(ctx context.Context) {
	s.ears = &ears{unwell: s.unwell}
	side, overlay := s.ws.Side()
	watch, err := s.Listen(ctx, session.Watched{
		Change: s.Row.ID, Side: side, Base: s.ws.BaseFolders(), Overlay: overlay,
		Secrets:   s.Secrets,
		Log:       filepath.Join(s.Changes, string(s.Row.ID), "logs", "file-changes.jsonl"),
		Threshold: s.mode.ChangesMax, Ops: s.Runtime.Ops,
		Handled: s.Meter.Handled(s.Row.ID),
	})
	if err != nil {
		s.unwell(err)
		return
	}
	s.ears.watch, s.ears.checked = watch, time.Now()
}

// unwell says that the watch does not work as it should; the tree decides all the same.
func (s *supervisor) unwell(err error) {
	s.Log.Warn("the kernel reports no changes of a workspace, so sallyport looks at it by the clock", "change", s.Row.ID, "error", err)
	s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event", Text: fmt.Sprintf("the kernel reports no changes of files here, so sallyport looks at the workspace every %s", s.mode.Poll)})
}

// quiet reports whether a look can be left out: a watch that is well heard nothing since the last
// checkpoint, and none is due by the clock, which also finds what raises no event.
func (s *supervisor) quiet(ctx context.Context) bool {
	return s.ears.silent(ctx) && time.Since(s.last) < s.mode.Interval
}

// ears hear from the kernel when something happens in a workspace.
type ears struct {
	watch   *session.Watch // nil: the clock alone says when to look
	checked time.Time      // when the watch last proved that it hears
	unwell  func(error)    // says that it does not
}

// silent reports whether the watch is well, as it proves once a while, and has heard nothing since it was reset.
func (e *ears) silent(ctx context.Context) bool {
	if e.watch == nil {
		return false
	}
	if time.Since(e.checked) >= healthEvery {
		e.checked = time.Now()
		if err := e.watch.Check(ctx); err != nil && ctx.Err() == nil {
			e.unwell(err)
		}
	}
	return e.watch.Health() == nil && e.watch.Count() == 0
}

// crossed is sent on when as much has changed as a checkpoint waits for.
func (e *ears) crossed() <-chan struct{} {
	if e.watch == nil {
		return nil
	}
	return e.watch.Threshold()
}

// reset begins to count anew: what was heard is in a checkpoint.
func (e *ears) reset(cp id.Checkpoint) {
	if e.watch != nil {
		e.watch.Reset(cp)
	}
}

// close ends the watch with its session.
func (e *ears) close() {
	if e.watch == nil {
		return
	}
	if err := e.watch.Close(); err != nil {
		e.unwell(err)
	}
}
