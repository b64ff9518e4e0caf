package trial

import (
	"context"

	"sallyport/internal/base/id"
)

// Tx is what a trial asks of a transaction.
type Tx interface {
	// AddTrial stores a new row, undecided. Errors: problem.Conflict if the change has one.
	AddTrial(ctx context.Context, t Trial) error
	// Trial returns the change's; false if it never had one.
	Trial(ctx context.Context, change id.Change) (Trial, bool, error)
	// MoveTrial writes what the step of the change knows, if the stored handshake is from still; it neither makes
	// nor alters a decision. Errors: change.ErrMoved.
	MoveTrial(ctx context.Context, from Handshake, t Trial) error
	// DecideTrial writes a decision, unless one is written already:
	// change.ErrMoved then. So exactly one of confirm, rollback and the end of the time wins.
	DecideTrial(ctx context.Context, change id.Change, d Decision) error
	// OpenTrials returns the trials of changes that are in trial, or whose way back has failed, oldest first.
	OpenTrials(ctx context.Context) ([]Trial, error)
}
