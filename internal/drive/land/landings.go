// Package land lands what was approved, looks first at what that results in where the branch has moved, and puts back the old files
// of what is on trial.
package land

import (
	"context"
	"fmt"
	"sync"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/authorship"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/submit"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/trial"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/policy"
)

// Parts are what landings stand on.
type Parts struct {
	*ledger.Ledger
	Guard       guard.Guard
	Grounds     grounds.Reader
	Commits     authorship.Composer
	Clock       func() (deadman.Moment, error)
	Lander      *landing.Lander
	Workspaces  *workspace.Manager
	Ops         disk.Ops
	Author      git.Signature // of commits of the host's own; its At is ignored
	Submissions *submit.Submissions
	Checks      *check.Checker
	Trials      Trials
	Backups     string // folder of the database's copies
	Host        guard.Host
	Tidy        func(ctx context.Context, row change.Row) // clears up after a change that has ended
}

// Trials knows what a landing goes through before it counts.
type Trials interface {
	Terms(ctx context.Context, row change.Row, l landing.Landing) (trial.Terms, error)
}

// Landings lands what was approved.
type Landings struct {
	Parts

	mu      sync.Mutex
	results map[id.Change]verdict // of the last trees that landings would have resulted in
}

// New returns Landings.
func New(p Parts) *Landings { return &Landings{Parts: p, results: map[id.Change]verdict{}} }

// Forget drops what is remembered of a change that is not to land.
func (ls *Landings) Forget(change id.Change) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.results, change)
}

// verdict is what was found out of a tree that a landing would result in.
type verdict struct {
	tree    git.OID
	policy  string
	results []proposal.CheckResult
	why     error // a check failed

	fresh, proposed []policy.Mark // the marks that the proposed tree has not, and those that it has
}

// failed says which check failed, the last that ran.
func failed(results []proposal.CheckResult) string {
	r := results[len(results)-1]
	return fmt.Sprintf("the check %q failed: %s", r.Command, r.Why)
}
