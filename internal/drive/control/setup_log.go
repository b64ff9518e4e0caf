package control

import (
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
)

// setupBytes is how much is kept of what a failed setup printed: its end.
const setupBytes = 256 << 10

// keepSetup writes down what a failed setup printed, in the place of an earlier one's.
func (c *Controller) keepSetup(change id.Change, failed *setupFailed) {
	event := c.Secrets.Redact(fmt.Sprintf("the setup %q failed: %s", failed.command, failed.run.why()))
	if err := session.KeepTranscript(c.Ops, session.SetupDir(c.Settings.Changes, change), failed.run.tail, event); err != nil {
		c.Log.Warn("what a failed setup printed was not kept", "change", change, "error", err)
	}
}
