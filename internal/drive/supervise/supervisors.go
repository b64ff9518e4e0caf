// Package supervise runs the sessions of changes' agents to their end: each has a supervisor that looks at what stands, takes
// checkpoints, judges, tells, stops and puts back, and that does what people ask of a session that runs.
package supervise

import (
	"context"
	"sync"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/who/person"
)

// Parts is what supervisors stand on.
type Parts struct {
	*ledger.Ledger
	Owner      person.Owner
	Workspaces *workspace.Manager
	Opener     work.Opener
	Runtime    live.Runtime
	Stocks     *stock.Stocks
	Checker    *check.Checker
	Takes      *Checkpointer
	Changes    string // folder of what is kept of each change for people to read
	// Listen watches a workspace and tells when something happens in it; without a watch the clock alone says when to look.
	Listen func(ctx context.Context, w session.Watched) (*session.Watch, error)
	// RedoWords say to an agent what has become of its files when its change was made anew; "" if nothing has.
	RedoWords func(ctx context.Context, row change.Row) (string, error)
	Tidy      func(ctx context.Context, row change.Row) // clears up after a change that has ended
}

// Supervisors runs the sessions of changes, each under a supervisor of its own, and hands on what people ask of them.
type Supervisors struct {
	Parts

	gate gate // to the judging of checkpoints
	mu   sync.Mutex
	live map[id.Change]*supervisor
}

// New returns supervisors of nothing yet.
func New(p Parts) *Supervisors { return &Supervisors{Parts: p, live: map[id.Change]*supervisor{}} }

// Standing reports whether the agent of a change runs, or stands where it was stopped.
func (ss *Supervisors) Standing(change id.Change) bool { return ss.watching(change) != nil }

// setLive remembers who watches the running session of a change; nil forgets it.
func (ss *Supervisors) setLive(change id.Change, s *supervisor) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s == nil {
		delete(ss.live, change)
		return
	}
	ss.live[change] = s
}

// watching returns who watches the running session of a change; nil if none runs.
func (ss *Supervisors) watching(change id.Change) *supervisor {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.live[change]
}
