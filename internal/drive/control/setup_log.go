package control

import (
	"fmt"
	"io"
	"path/filepath"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
)

// setupBytes is how much is kept of what a failed setup printed: its end.
const setupBytes = 256 << 10

// setupDir is where a change keeps what its setup printed when it failed.
func (c *Controller) setupDir(change id.Change) string {
	return filepath.Join(c.Settings.Changes, string(change), "setup")
}

// keepSetup writes down what a failed setup printed, in the place of an earlier one's.
func (c *Controller) keepSetup(change id.Change, failed *setupFailed) {
	event := c.Secrets.Redact(fmt.Sprintf("the setup %q failed: %s", failed.command, failed.run.why()))
	if err := session.KeepTranscript(c.Ops, c.setupDir(change), failed.run.tail, event); err != nil {
		c.Log.Warn("what a failed setup printed was not kept", "change", change, "error", err)
	}
}

// setupTranscript is what the setup of a change printed whose agent has not begun.
func (c *Controller) setupTranscript(change id.Change) (io.ReadCloser, error) {
	if dir := c.setupDir(change); session.HasTranscript(dir) {
		return session.OpenTranscript(dir)
	}
	return nil, problem.Errorf(problem.NotFound, "sallyport change show "+string(change), "%s has no transcript: its agent has not begun", change)
}
