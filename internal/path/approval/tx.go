package approval

import (
	"context"

	"sallyport/internal/base/id"
)

// Tx is what approval asks of a transaction.
type Tx interface {
	AddApproval(ctx context.Context, a Approval) error
	// Approval returns one; a problem.NotFound error naming it if there is none.
	Approval(ctx context.Context, id id.Approval) (Approval, error)
	// PendingApproval returns the change's open one; false if none is open.
	PendingApproval(ctx context.Context, change id.Change) (Approval, bool, error)
	// LatestApproval returns the change's newest, whatever was decided; problem.NotFound if it has none.
	LatestApproval(ctx context.Context, change id.Change) (Approval, error)
	// Decide moves one from pending to a's decision, compare and set; ErrDecided if it was not pending.
	Decide(ctx context.Context, a Approval) error
}
