package landing

import (
	"context"

	"sallyport/internal/base/id"
)

// Tx is what landing asks of a transaction.
type Tx interface {
	// AddLanding stores a journal row.
	AddLanding(ctx context.Context, l Landing) error
	// CloseLanding moves a row from Journaled or Stranded to l.State, compare and set.
	CloseLanding(ctx context.Context, l Landing) error
	// OpenLandings returns the rows that are not at an end, oldest first.
	OpenLandings(ctx context.Context) ([]Landing, error)
	// LandingOf returns the change's latest row; false if there is none.
	LandingOf(ctx context.Context, change id.Change) (Landing, bool, error)
}
