package control

import (
	"testing"
	"time"

	"sallyport/internal/path/change"
)

func TestWhatShouldMoveByItselfAndDoesNotHasAWayOut(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		state    change.State
		attempts int
		since    time.Duration
		want     string
	}{
		{change.Landing, 0, 30 * time.Second, ""},
		{change.Landing, 1, time.Second, "sallyport change cancel chg-1"},
		{change.Landing, 0, 2 * time.Minute, "sallyport change cancel chg-1"},
		{change.Submitted, 2, time.Second, "sallyport change cancel chg-1"},
		{change.Working, 0, time.Hour, ""},
		{change.InTrial, 0, time.Hour, ""},
		{change.InTrial, 1, time.Second, "sallyport rollback chg-1"},
		{change.RollbackFailed, 0, time.Second, "sallyport change cancel chg-1"},
		{change.AwaitingApproval, 1, time.Hour, ""}, // a person's turn, whatever was tried before
		{change.Finalized, 0, time.Hour, ""},
	} {
		row := change.Row{ID: "chg-1", State: c.state, Attempts: c.attempts, Moved: now.Add(-c.since)}
		if got := WayOut(row, now); got != c.want {
			t.Errorf("%s after %s and %d attempts: %q, want %q", c.state, c.since, c.attempts, got, c.want)
		}
	}
}
