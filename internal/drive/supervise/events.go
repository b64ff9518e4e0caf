package supervise

import (
	"context"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
)

// healthEvery is how often a watch is asked to prove that it still hears (SV-092).
const healthEvery = time.Minute

// events are what the kernel tells of a workspace: that something happens there, never what.
type events struct {
	watch   *session.Watch // nil: the clock alone says when to look
	checked time.Time      // when the watch last proved that it hears
	unwell  func(error)    // says that it does not
}

// silent reports whether the watch is well, as it proves once a while, and has heard nothing since it was reset.
func (e *events) silent(ctx context.Context) bool {
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
func (e *events) crossed() <-chan struct{} {
	if e.watch == nil {
		return nil
	}
	return e.watch.Threshold()
}

// reset begins to count anew: what was heard is in a checkpoint.
func (e *events) reset(cp id.Checkpoint) {
	if e.watch != nil {
		e.watch.Reset(cp)
	}
}

// close ends the watch with its session.
func (e *events) close() {
	if e.watch == nil {
		return
	}
	if err := e.watch.Close(); err != nil {
		e.unwell(err)
	}
}
