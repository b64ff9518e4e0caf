package supervise

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
)

// listen begins to watch the workspace, after a test that the kernel tells of writes. Without a watch
// the workspace is looked at by the clock alone: events only say when to look (SV-069).
func (s *supervisor) listen(ctx context.Context) {
	s.events = &events{unwell: s.unwell}
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
	s.events.watch, s.events.checked = watch, time.Now()
}

// unwell says that the watch does not work as it should; the tree decides all the same.
func (s *supervisor) unwell(err error) {
	s.Log.Warn("the kernel reports no changes of a workspace, so sallyport looks at it by the clock", "change", s.Row.ID, "error", err)
	s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event",
		Text: fmt.Sprintf("the kernel reports no changes of files here, so sallyport looks at the workspace every %s", s.mode.Poll)})
}

// quiet reports whether a look can be left out: a watch that is well heard nothing since the last
// checkpoint, and none is due by the clock, which also finds what raises no event.
func (s *supervisor) quiet(ctx context.Context) bool {
	return s.events.silent(ctx) && time.Since(s.last) < s.mode.Interval
}
