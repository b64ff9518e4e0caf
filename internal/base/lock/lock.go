// Package lock holds two kinds of exclusion: a kernel lock on a folder for as long as a
// process lives, and a lease with a lifetime and a fencing token in the store.
package lock

import (
	"context"
	"time"

	"sallyport/internal/base/problem"
)

// ErrLost is returned to a holder whose lease was taken over: it may write nothing more.
var ErrLost = problem.New(problem.Conflict, "another holder has the lease by now")

// Lease is a lock with a lifetime. Fence grows with every taking.
type Lease struct {
	Key    string    `json:"key"` // such as repo:<common dir>
	Holder string    `json:"holder"`
	Fence  int64     `json:"fence"`
	Until  time.Time `json:"until"`
}

// Tx is what lock asks of a transaction.
type Tx interface {
	// TakeLease takes or renews key for holder; false, with the present lease, if another holds it.
	TakeLease(ctx context.Context, key, holder string, now time.Time, ttl time.Duration) (Lease, bool, error)
	// DropLease gives it back; giving back a lost one does nothing.
	DropLease(ctx context.Context, l Lease) error
}
