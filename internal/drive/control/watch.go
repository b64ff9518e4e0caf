package control

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
)

// healthEvery is how often a watch is asked to prove that it still hears (SV-092).
const healthEvery = time.Minute

// listen begins to watch the workspace, after a test that the kernel tells of writes. Without a watch
// the workspace is looked at by the clock alone: events only say when to look (SV-069).
func (s *supervisor) listen(ctx context.Context) {
	side, overlay := s.ws.Side()
	watch, err := s.c.Listen(ctx, session.Watched{
		Change: s.row.ID, Side: side, Base: s.ws.BaseFolders(), Overlay: overlay,
		Secrets:   s.c.Secrets,
		Log:       filepath.Join(s.c.Settings.Changes, string(s.row.ID), "logs", "file-changes.jsonl"),
		Threshold: s.mode.ChangesMax, Ops: s.c.Ops,
		Handled: s.c.Meter.Handled(s.row.ID),
	})
	if err != nil {
		s.unwell(err)
		return
	}
	s.watch, s.checked = watch, time.Now()
}

// deaf closes the watch at the session's end.
func (s *supervisor) deaf() {
	if s.watch == nil {
		return
	}
	if err := s.watch.Close(); err != nil {
		s.unwell(err)
	}
}

// unwell says that the watch does not work as it should; the tree decides all the same.
func (s *supervisor) unwell(err error) {
	s.c.Log.Warn("the kernel reports no changes of a workspace, so sallyport looks at it by the clock", "change", s.row.ID, "error", err)
	s.c.Feed.Publish(change.Notice{Change: s.row.ID, At: ledger.Now(), Kind: "event", Text: fmt.Sprintf("the kernel reports no changes of files here, so sallyport looks at the workspace every %s", s.mode.Poll)})
}

// quiet reports whether a look can be left out: a watch that is well heard nothing since the last
// checkpoint, and none is due by the clock, which also finds what raises no event.
func (s *supervisor) quiet(ctx context.Context) bool {
	if s.watch == nil {
		return false
	}
	if time.Since(s.checked) >= healthEvery {
		s.checked = time.Now()
		if err := s.watch.Check(ctx); err != nil && ctx.Err() == nil {
			s.unwell(err)
		}
	}
	return s.watch.Health() == nil && s.watch.Count() == 0 && time.Since(s.last) < s.mode.Interval
}

// crossed is sent on when as much has changed as a checkpoint waits for.
func (s *supervisor) crossed() <-chan struct{} {
	if s.watch == nil {
		return nil
	}
	return s.watch.Threshold()
}
