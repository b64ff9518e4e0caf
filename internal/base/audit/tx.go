package audit

import "context"

// Tx is what audit asks of a transaction.
type Tx interface {
	// AppendEntry adds e as the last entry and binds it to the one before.
	AppendEntry(ctx context.Context, e Entry) error
}
