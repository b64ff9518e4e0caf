package control

import (
	"time"

	"sallyport/internal/path/change"
)

// waitingMax is how long a landing may wait for others before it counts as stuck.
const waitingMax = time.Minute

// WayOut returns the command by which a person ends the waiting of a change that should move by itself and does not:
// a step of it has failed and is tried again, or it waits for its turn to land for longer than a minute. It is
// "" for a change that is not stuck.
func WayOut(row change.Row, now time.Time) string {
	cancel := "sallyport change cancel " + string(row.ID)
	switch state := row.State; {
	case state == change.RollbackFailed:
		return cancel
	case !state.Due():
		return ""
	case state == change.InTrial && row.Attempts > 0: // a trial ends by what a person says of it, or with its time
		return "sallyport rollback " + string(row.ID)
	case row.Attempts > 0, state == change.Landing && now.Sub(row.Moved) > waitingMax:
		return cancel
	}
	return ""
}
