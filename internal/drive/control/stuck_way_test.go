package control

import (
	"testing"
	"time"

	"sallyport/internal/store"
)

func TestWhatShouldMoveByItselfAndDoesNotHasAWayOut(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		state    State
		attempts int
		since    time.Duration
		want     string
	}{
		{Landing, 0, 30 * time.Second, ""},
		{Landing, 1, time.Second, "sallyport change cancel chg-1"},
		{Landing, 0, 2 * time.Minute, "sallyport change cancel chg-1"},
		{Submitted, 2, time.Second, "sallyport change cancel chg-1"},
		{Working, 0, time.Hour, ""},
		{InTrial, 0, time.Hour, ""},
		{InTrial, 1, time.Second, "sallyport rollback chg-1"},
		{RollbackFailed, 0, time.Second, "sallyport change cancel chg-1"},
		{AwaitingApproval, 1, time.Hour, ""}, // a person's turn, whatever was tried before
		{Finalized, 0, time.Hour, ""},
	} {
		row := store.Change{ID: "chg-1", State: string(c.state), Attempts: c.attempts, Moved: now.Add(-c.since)}
		if got := WayOut(row, now); got != c.want {
			t.Errorf("%s after %s and %d attempts: %q, want %q", c.state, c.since, c.attempts, got, c.want)
		}
	}
}
