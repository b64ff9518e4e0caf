// Package confirm brings what has landed on trial to its end: its target comes up and answers, a person is asked, and it is kept
// or goes back.
package confirm

import (
	"context"
	"sync"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/trial"
	"sallyport/internal/path/workspace"
)

// Parts are what trials stand on.
type Parts struct {
	*ledger.Ledger
	Guard      guard.Guard
	Clock      func() (deadman.Moment, error)
	Targets    Targets
	Chats      Chats
	Host       guard.Host
	Lander     *landing.Lander
	Workspaces *workspace.Manager
	// Restore lands the inverse of what is on trial, unless an earlier try has, and says so in t.
	Restore func(ctx context.Context, row change.Row, t *trial.Trial) error
	Works   *lock.Keyed[id.Change]                    // one step of a change, or the clearing up after its last one, at a time
	Tidy    func(ctx context.Context, row change.Row) // clears up after a change that has ended
}

// Confirmer has what landed confirmed, or taken back.
type Confirmer struct {
	Parts

	mu     sync.Mutex
	nudges map[id.Change]chan struct{} // of the trials that a step is busy with: look at the row again
}

// New returns a Confirmer.
func New(p Parts) *Confirmer {
	return &Confirmer{Parts: p, nudges: map[id.Change]chan struct{}{}}
}
