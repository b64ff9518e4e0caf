// Package ledger has the transactions by which every room of the drive moves a change: who holds it, what becomes of it, what the
// audit log says, and who is told. It knows no sandbox and no repository.
package ledger

import (
	"context"
	"log/slog"
	"sync"

	"sallyport/internal/base/id"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/metric"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
)

// Parts is what a ledger stands on.
type Parts struct {
	DB      store.DB
	Secrets *secret.Scanner // takes secrets out of what is kept and shown
	Meter   *metric.Set     // nil measures nothing
	Log     *slog.Logger
	Tell    Teller
	Ended   func(change.Row) // lets go what is held in memory for a change, before anybody hears that it has come to its end
}

// Ledger moves rows and tells of it.
type Ledger struct {
	Parts
	Feed   *change.Feed
	Origin *Origin

	holder string // of this daemon's life
	wake   chan struct{}

	mu     sync.Mutex
	life   context.Context // of the reconciler
	asides sync.WaitGroup  // what runs beside the steps
}

// New returns a ledger that outlives every step until Begin.
func New(p Parts) *Ledger {
	return &Ledger{
		Parts:  p,
		Feed:   change.NewFeed(p.Secrets.Redact),
		Origin: &Origin{secrets: p.Secrets},
		holder: string(id.NewSession("daemon")),
		wake:   make(chan struct{}, 1),
		life:   context.Background(),
	}
}
