package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/audit"
	"sallyport/internal/checkpoint"
	"sallyport/internal/problem"
	"sallyport/internal/sandbox"
	"sallyport/internal/session"
	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

const (
	stableFor   = 100 * time.Millisecond // a tree that has not moved for so long is stable (SV-045)
	stablePoll  = 50 * time.Millisecond
	stableMax   = time.Second // after that it is frozen as it is: a frozen tree is stable
	failuresMax = 3           // invalid checkpoints in a row before a person is asked (SV-090)
)

// supervisor watches one running session. It is the only one that takes checkpoints of it,
// so there is never more than one at a time (SV-044); others ask it.
type supervisor struct {
	c       *Controller
	row     store.Change // as this supervisor wrote it last
	ws      workspace.Workspace
	run     *session.Running
	mode    session.Supervision
	asks    chan ask
	over    chan struct{}    // closed when nobody answers any more
	process sandbox.Process  // once it runs
	still   bool             // frozen for longer than a checkpoint
	last    time.Time        // of the last checkpoint
	seen    map[string]int64 // what the last checkpoint saw: path → when it changed
	bad     int              // invalid checkpoints in a row
}

// errOver says that the session ended before it could be asked.
var errOver = problem.New(problem.Conflict, "the session has ended")

// ask is something a person wants of a running session.
type ask struct {
	do   func(ctx context.Context) error
	done chan error
}

// ended is how a session came to its end.
type ended struct {
	exit sandbox.Exit
	err  error
}

// supervise runs a session to its end and looks at it meanwhile.
func (c *Controller) supervise(ctx context.Context, row *store.Change, ws workspace.Workspace, run *session.Running, mode session.Supervision) (sandbox.Exit, error) {
	s := &supervisor{c: c, row: *row, ws: ws, run: run, mode: mode, asks: make(chan ask), over: make(chan struct{}), last: time.Now(), seen: map[string]int64{}}
	started := make(chan sandbox.Process, 1)
	run.Live = func(p sandbox.Process) { started <- p }
	over := make(chan ended, 1)
	go func() {
		exit, err := session.Run(ctx, *run)
		over <- ended{exit, err}
	}()
	var end ended
	select {
	case end = <-over:
	case s.process = <-started:
		c.setLive(row.ID, s)
		end = s.watch(ctx, over)
		c.setLive(row.ID, nil)
		close(s.over)
	}
	*row = s.row
	return end.exit, end.err
}

// watch waits for the end and does meanwhile what is due or asked for.
func (s *supervisor) watch(ctx context.Context, over <-chan ended) ended {
	poll := time.NewTicker(s.mode.Poll)
	defer poll.Stop()
	for {
		select {
		case end := <-over:
			if ctx.Err() == nil {
				s.wake(ctx)
			}
			return end
		case a := <-s.asks:
			a.done <- a.do(ctx)
		case <-poll.C:
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				s.c.Log.Warn("a checkpoint was not taken; the next one is tried", "change", s.row.ID, "error", err)
			}
		}
	}
}

// wake brings a row whose session has ended back to working, from where it is judged.
func (s *supervisor) wake(ctx context.Context) {
	if State(s.row.State) == Working {
		return
	}
	if err := s.shift(ctx, Move{Event: Resume, By: audit.Host, Reason: "the session ended"}); err != nil {
		s.c.Log.Error("a session's end was not written", "change", s.row.ID, "error", err)
	}
}

// shift moves the row and goes on holding it.
func (s *supervisor) shift(ctx context.Context, m Move) error {
	m.Keep = true
	row, err := s.c.inTx(ctx, s.row, func(tx store.Tx, row *store.Change) error { return s.c.move(ctx, tx, row, m) })
	s.row = row
	return err
}

// look counts what has changed and takes a checkpoint if one is due.
func (s *supervisor) look(ctx context.Context) error {
	if s.still || time.Since(s.last) < s.mode.Apart {
		return nil
	}
	moved, err := s.moved(ctx)
	if err != nil || moved == 0 {
		return err
	}
	switch {
	case moved >= s.mode.ChangesMax:
		_, err = s.take(ctx, checkpoint.Changes)
	case time.Since(s.last) >= s.mode.Interval:
		_, err = s.take(ctx, checkpoint.Interval)
	}
	return err
}

// moved counts the paths that have changed since the last checkpoint.
func (s *supervisor) moved(ctx context.Context) (int, error) {
	now, err := s.stamps(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for path, at := range now {
		if before, ok := s.seen[path]; !ok || before != at {
			n++
		}
	}
	for path := range s.seen {
		if _, ok := now[path]; !ok {
			n++
		}
	}
	return n, nil
}

func (s *supervisor) stamps(ctx context.Context) (map[string]int64, error) {
	diff, err := s.c.Workspaces.Walk(ctx, s.ws)
	if err != nil {
		return nil, err
	}
	at := make(map[string]int64, len(diff.Changes))
	for _, f := range diff.Changes {
		at[f.Path] = f.At
	}
	return at, nil
}

// take takes one checkpoint of the running session: wait until the tree is stable, freeze,
// record, thaw. What it means for the agent follows from the verdict.
func (s *supervisor) take(ctx context.Context, why checkpoint.Trigger) (checkpoint.Checkpoint, error) {
	if !s.still {
		s.settle(ctx)
	}
	taken, err := s.c.take(ctx, s.row, s.ws, why, s.run.Session.ID, s)
	s.last = time.Now()
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	if taken.Checkpoint.Status == checkpoint.Valid {
		s.bad = 0
		return taken.Checkpoint, nil
	}
	s.bad++
	if s.bad >= failuresMax && why != checkpoint.OnDemand && !s.still {
		return taken.Checkpoint, s.block(ctx, taken.Checkpoint)
	}
	return taken.Checkpoint, nil
}

// settle waits until nothing has moved for stableFor, at most stableMax.
func (s *supervisor) settle(ctx context.Context) {
	end := time.Now().Add(stableMax)
	last, err := s.stamps(ctx)
	for quiet := time.Now(); err == nil && time.Since(quiet) < stableFor && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(stablePoll):
		}
		var now map[string]int64
		if now, err = s.stamps(ctx); err == nil && !equal(last, now) {
			last, quiet = now, time.Now()
		}
	}
}

func equal(a, b map[string]int64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// Freeze stops the session for a checkpoint and notes what stands there; one that a person
// or the breaker stopped stands already.
func (s *supervisor) Freeze(ctx context.Context) error {
	if !s.still {
		if err := s.process.Freeze(ctx); err != nil {
			return err
		}
	}
	seen, err := s.stamps(ctx)
	if err == nil {
		s.seen = seen
	}
	return err
}

// Thaw lets the session go on after a checkpoint, unless it is to stand.
func (s *supervisor) Thaw() error {
	if s.still {
		return nil
	}
	return s.process.Thaw()
}

// stop freezes the session until somebody resumes it.
func (s *supervisor) stop(ctx context.Context) error {
	if s.still {
		return nil
	}
	if err := s.process.Freeze(ctx); err != nil {
		return err
	}
	s.still = true
	return nil
}

// block stops an agent that goes on breaking rules and asks a person (SV-090, SV-091).
func (s *supervisor) block(ctx context.Context, cp checkpoint.Checkpoint) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	v := refusal(s.row.ID, cp.Violations)
	because := problem.Errorf(problem.Refused, "sallyport change resume "+string(s.row.ID),
		"%d checkpoints in a row break the rules; the agent is stopped: %w", s.bad, v)
	err := s.shift(ctx, Move{Event: Block, By: audit.Host, Subject: string(cp.ID), Verb: "blocked: interactive_mode_failure", Because: because})
	if err != nil {
		s.still = false
		return errors.Join(err, s.process.Thaw())
	}
	return nil
}

// please hands something to a running session's supervisor and waits for its answer. A session
// that ends meanwhile answers by its absence: errOver.
func (s *supervisor) please(ctx context.Context, do func(ctx context.Context) error) error {
	a := ask{do: do, done: make(chan error, 1)}
	select {
	case s.asks <- a:
	case <-s.over:
		return errOver
	case <-ctx.Done():
		return fmt.Errorf("the session did not answer: %w", context.Cause(ctx))
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the session did not answer: %w", context.Cause(ctx))
	}
}
