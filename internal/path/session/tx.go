package session

import (
	"context"

	"sallyport/internal/base/id"
)

// Tx is what session asks of a transaction.
type Tx interface {
	// PutSession stores or replaces a session by its id.
	PutSession(ctx context.Context, s Session) error
	// Session returns one; a problem.NotFound error naming it if there is none.
	Session(ctx context.Context, id id.Session) (Session, error)
	// Sessions returns a subject's, oldest first.
	Sessions(ctx context.Context, subject id.Subject) ([]Session, error)
	// AddAsked counts what a subject's programs asked of their way out, in the lines that there are or in new ones.
	AddAsked(ctx context.Context, subject id.Subject, asked []Asked) error
	// Asked returns a subject's lines, in the order in which they came up.
	Asked(ctx context.Context, subject id.Subject) ([]Asked, error)
}
