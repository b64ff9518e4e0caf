package proposal

import (
	"context"

	"sallyport/internal/base/id"
)

// Tx is what proposal asks of a transaction.
type Tx interface {
	// AddProposal stores p as the change's current one; the number must be the next.
	AddProposal(ctx context.Context, p Proposal) error
	// Proposal returns a change's current one; false if there is none.
	Proposal(ctx context.Context, change id.Change) (Proposal, bool, error)
}
