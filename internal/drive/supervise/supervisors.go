// Package supervise runs the sessions of changes' agents to their end: each has a supervisor that looks at what stands, takes
// checkpoints, judges, tells, stops and puts back, and that does what people ask of a session that runs.
package supervise

import (
	"context"
	"sync"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

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

// supervised returns who watches a change's agent, for somebody who may ask.
func (ss *Supervisors) supervised(ctx context.Context, change id.Change, by audit.Actor) (*supervisor, error) {
	if err := ss.Owner.MayDecide(by); err != nil {
		return nil, err
	}
	row, err := ss.Row(ctx, change)
	if err != nil {
		return nil, err
	}
	if s := ss.watching(change); s != nil {
		return s, nil
	}
	return nil, problem.Errorf(problem.Conflict, "sallyport change show "+string(change), "no agent of %s runs: it is %s", change, row.State.Words())
}
