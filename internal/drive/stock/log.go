package stock

import (
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
)

// setupBytes is how much is kept of what a failed setup printed: its end.
const setupBytes = 256 << 10

// keepSetup writes down what a failed setup printed, in the place of an earlier one's.
func (s *Stocks) keepSetup(change id.Change, failed *SetupFailed) {
	event := s.Secrets.Redact(fmt.Sprintf("the setup %q failed: %s", failed.Command, failed.Run.Why()))
	if err := session.KeepTranscript(s.Ops, session.SetupDir(s.Changes, change), failed.Run.Tail, event); err != nil {
		s.Log.Warn("what a failed setup printed was not kept", "change", change, "error", err)
	}
}
