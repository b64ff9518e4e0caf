package checkpoint

import (
	"context"

	"sallyport/internal/base/id"
)

// Tx is what checkpoint asks of a transaction.
type Tx interface {
	// AddCheckpoint stores c; storing the same number of a change again with the same commit does nothing.
	AddCheckpoint(ctx context.Context, c Checkpoint) error
	// Checkpoints returns a change's, by number.
	Checkpoints(ctx context.Context, change id.Change) ([]Checkpoint, error)
	// Checkpoint returns one; a problem.NotFound error naming it if there is none.
	Checkpoint(ctx context.Context, id id.Checkpoint) (Checkpoint, error)
}
