package approval

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/who/question"
)

// Tx is what approval asks of a transaction.
type Tx interface {
	question.Tx
	// AddApproval binds a question that waits to a proposal. What is decided stands in the question.
	AddApproval(ctx context.Context, a Approval) error
	// Approval returns one; a problem.NotFound error naming it if there is none.
	Approval(ctx context.Context, id id.Approval) (Approval, error)
	// PendingApproval returns the change's open one; false if none is open.
	PendingApproval(ctx context.Context, change id.Change) (Approval, bool, error)
	// LatestApproval returns the change's newest, whatever was decided; problem.NotFound if it has none.
	LatestApproval(ctx context.Context, change id.Change) (Approval, error)
	// NoteYes keeps what a yes says of the commit; ErrDecided if the question has its outcome.
	NoteYes(ctx context.Context, id id.Approval, message string, unsigned bool) error
}
