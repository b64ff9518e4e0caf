package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
)

const (
	stableFor   = 100 * time.Millisecond // a tree that has not moved for so long is stable (SV-045)
	stablePoll  = 50 * time.Millisecond
	stableMax   = time.Second // after that it is frozen as it is: a frozen tree is stable
	failuresMax = 3           // failed checkpoints in a row before a person is asked (SV-090)

)

// supervisor watches one running session. It is the only one that takes checkpoints of it,
// so there is never more than one at a time (SV-044); others ask it.
type supervisor struct {
	c    *Controller
	row  change.Row // as this supervisor wrote it last
	ws   workspace.Workspace
	host git.Dir
	run  *session.Running
	mode session.Supervision

	asks    chan ask
	over    chan struct{}   // closed when nobody answers any more
	process sandbox.Process // once it runs
	still   bool            // it stands until somebody resumes it
	held    bool            // it stands for what is being done now

	last    time.Time        // of the last checkpoint
	seen    map[string]int64 // what the last checkpoint saw: path → when it changed
	watch   *session.Watch   // nil: the clock alone says when to look
	checked time.Time        // when the watch last proved that it hears
	failed  int              // failed checkpoints in a row
	again   bool             // this session cannot go on: another begins from row.From
	limit   *sandbox.Limit   // that the host ended it for

	rounds rounds       // of a program with turns
	broke  <-chan error // why a request to its model was refused

	telling sync.WaitGroup // messages that are under way to the agent; they end with the session
}

// errOver says that the session ended before it could be asked.
var errOver = problem.New(problem.Conflict, "the agent's session has ended")

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

// supervise runs a session to its end and looks at it meanwhile. With again it is no end to judge:
// another session begins from row.From.
func (c *Controller) supervise(ctx context.Context, row *change.Row, ws workspace.Workspace, run *session.Running, mode session.Supervision) (exit sandbox.Exit, again bool, err error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project, git.OID(row.Base))
	if err != nil {
		return sandbox.Exit{}, false, err
	}
	s := &supervisor{
		c: c, row: *row, ws: ws, host: host, run: run, mode: mode,
		asks: make(chan ask), over: make(chan struct{}), last: time.Now(), seen: map[string]int64{},
		rounds: newRounds(run.Program), broke: c.budget.Subscribe(row.ID),
	}
	defer c.budget.Unsubscribe(row.ID)
	s.listen(ctx)
	defer s.deaf()
	started := make(chan sandbox.Process, 1)
	run.Live = func(p sandbox.Process) { started <- p }
	over := make(chan ended, 1)
	go func() { // ends with the session
		exit, err := session.Run(ctx, *run)
		over <- ended{exit, err}
	}()
	var end ended
	select {
	case end = <-over:
	case p := <-started:
		s.last = time.Now() // what it took to build its sandbox is not the agent's time
		s.process = &measured{Process: p, meter: c.Meter, change: row.ID}
		c.setLive(row.ID, s)
		end = s.attend(ctx, over)
		c.setLive(row.ID, nil)
		close(s.over)
	}
	s.dropChecks()
	s.telling.Wait()
	*row = s.row
	if s.limit != nil && end.exit.Limit == nil {
		end.exit.Limit = s.limit
	}
	end.exit = s.rounded(end.exit)
	return end.exit, s.again, end.err
}

// attend waits for the end and does meanwhile what is due or asked for.
func (s *supervisor) attend(ctx context.Context, over <-chan ended) ended {
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
		case turn := <-s.turns():
			s.turnEnded(ctx, turn)
		case v := <-s.verdicts():
			s.weigh(ctx, v)
		case why := <-s.broke:
			s.overspent(ctx, why)
		case <-s.rounds.deaf:
			s.finish()
		case <-s.rounds.late:
			s.outstays()
		case <-s.crossed():
			s.look(ctx)
		case <-poll.C:
			if !s.quiet(ctx) {
				s.look(ctx)
			}
		}
	}
}

// wake brings a row whose session has ended back to working, from where it is judged.
func (s *supervisor) wake(ctx context.Context) {
	if s.row.State == change.Working {
		return
	}
	if err := s.shift(ctx, ledger.Move{Event: change.Resume, By: audit.Host, Reason: "the session ended"}); err != nil {
		s.c.Log.Error("the end of a session was not recorded", "change", s.row.ID, "error", err)
	}
}

// shift moves the row and goes on holding it.
func (s *supervisor) shift(ctx context.Context, m ledger.Move) error {
	m.Keep = true
	row, err := s.c.InTx(ctx, s.row, func(tx store.Tx, row *change.Row) error { return s.c.Move(ctx, tx, row, m) })
	s.row = row
	return err
}

// amend writes what change changes in the row, which stays in its state, and an entry that says why.
func (s *supervisor) amend(ctx context.Context, m ledger.Move, verb string, change func(*change.Row)) error {
	row := s.row
	err := s.c.DB.InTx(ctx, func(tx store.Tx) error {
		row = s.row
		change(&row)
		if err := tx.MoveChange(ctx, s.row.State, row); err != nil {
			return err
		}
		said := row
		said.Reason = m.Reason
		return s.c.Append(ctx, tx, &said, m, verb, ledger.Now())
	})
	if err == nil {
		s.row = row
	}
	return err
}

// look counts what has changed and takes a checkpoint if one is due. A checkpoint that cannot be
// taken has failed: it counts like one that is not valid (SV-090).
func (s *supervisor) look(ctx context.Context) {
	if s.still || s.again || s.limit != nil {
		return
	}
	diff, err := s.c.Workspaces.Walk(ctx, s.ws)
	if err == nil {
		over, unmeasured := s.tooMuch(ctx, diff)
		if over {
			return
		}
		err = errors.Join(unmeasured, s.due(ctx, stamps(diff)))
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, errOver) {
		return
	}
	s.c.Log.Warn("a checkpoint could not be taken; sallyport tries again at the next one", "change", s.row.ID, "error", err)
	s.failed++
	if s.failed >= failuresMax {
		err = s.block(ctx, string(s.row.ID), fmt.Errorf("%d checkpoints in a row failed: %w", s.failed, err))
		if err != nil {
			s.c.Log.Error("an agent whose work cannot be checked could not be paused, so it was ended", "change", s.row.ID, "error", err)
			s.process.Kill()
		}
	}
}

// tooMuch ends a session whose workspace holds more than it may, or that writes while the disk is as good as full.
func (s *supervisor) tooMuch(ctx context.Context, diff workspace.Diff) (over bool, err error) {
	use, err := s.c.Workspaces.Usage(ctx, s.ws, diff)
	if err != nil {
		return false, err
	}
	s.c.Meter.Upper(s.row.ID, use.Held)
	if s.watch != nil {
		s.c.Meter.Held(s.row.ID, s.watch.Stats().HeldBytes)
	}
	mb := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	switch {
	case use.Held > s.mode.UpperBytesMax:
		s.end(&sandbox.Limit{Name: sandbox.Disk, Value: mb(s.mode.UpperBytesMax), Observed: mb(use.Held)})
	case use.Low():
		s.end(&sandbox.Limit{Name: sandbox.FreeDisk, Value: mb(min(use.All/50, 1<<30)), Observed: mb(use.Free)})
	default:
		return false, nil
	}
	return true, nil
}

// due takes a checkpoint if enough has changed, or long enough ago (SV-021, SV-043).
func (s *supervisor) due(ctx context.Context, at map[string]int64) error {
	moved := moved(s.seen, at)
	since := time.Since(s.last)
	if moved == 0 || since < s.mode.Apart {
		return nil
	}
	why := checkpoint.Interval
	switch {
	case moved >= s.mode.ChangesMax:
		why = checkpoint.Changes
	case since < s.mode.Interval:
		return nil
	}
	_, err := s.take(ctx, why)
	return err
}

// end ends the session because it broke a limit that the host holds it to; it is judged like any other end.
func (s *supervisor) end(l *sandbox.Limit) {
	s.limit = l
	s.process.Kill()
}

// moved counts the paths that differ between two walks.
func moved(before, after map[string]int64) (n int) {
	for path, at := range after {
		if was, ok := before[path]; !ok || was != at {
			n++
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			n++
		}
	}
	return n
}

// stamps says when each found path last changed.
func stamps(d workspace.Diff) map[string]int64 {
	at := make(map[string]int64, len(d.Changes))
	for _, f := range d.Changes {
		at[f.Path] = f.At
	}
	return at
}

// settle waits until nothing has moved for stableFor, at most stableMax (SV-045).
func (s *supervisor) settle(ctx context.Context) {
	end := time.Now().Add(stableMax)
	last, err := s.c.Workspaces.Walk(ctx, s.ws)
	for quiet := time.Now(); err == nil && time.Since(quiet) < stableFor && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(stablePoll):
		}
		var now workspace.Diff
		if now, err = s.c.Workspaces.Walk(ctx, s.ws); err == nil && !maps.Equal(stamps(last), stamps(now)) {
			last, quiet = now, time.Now()
		}
	}
}

// hold does something while every process of the session stands, and lets it run again on every
// way out, unless it is to stand (SV-085).
func (s *supervisor) hold(ctx context.Context, do func() error) (err error) {
	if s.still || s.held {
		return do()
	}
	if err := s.process.Freeze(ctx); err != nil {
		return notStopped(err)
	}
	stood := s.c.Meter.Stands()
	s.held = true
	defer func() {
		defer stood()
		s.held = false
		if s.still || s.again {
			return
		}
		if thawed := s.process.Thaw(); thawed != nil {
			err = errors.Join(err, fmt.Errorf("let the session run again: %w", thawed))
		}
	}()
	return do()
}

// take takes one checkpoint of the running session: wait until the tree is stable, freeze,
// record, do what its verdict asks for, thaw; then the agent is told.
func (s *supervisor) take(ctx context.Context, why checkpoint.Trigger) (taken checkpoint.Taken, err error) {
	if !s.still {
		s.settle(ctx)
	}
	action := session.ActionNone
	judge := func() error {
		if taken, err = s.record(ctx, why); err != nil {
			return err
		}
		action, err = s.answer(ctx, taken, why)
		return err
	}
	defer s.askToPause(ctx)()
	if gate, urgent := &s.c.gate, why == checkpoint.OnDemand; !urgent && gate.crowded() {
		err = s.hold(ctx, func() error { return gate.pass(ctx, urgent, judge) }) // back-pressure (SV-095)
	} else {
		err = gate.pass(ctx, urgent, func() error { return s.hold(ctx, judge) })
	}
	if taken.Checkpoint.Status == checkpoint.Invalid && !(why == checkpoint.TurnEnded && s.lastRound() && !s.still) {
		s.tell(ctx, taken.Checkpoint, action)
	}
	return taken, err
}

// record takes a checkpoint of a session that stands and remembers what stood there.
func (s *supervisor) record(ctx context.Context, why checkpoint.Trigger) (checkpoint.Taken, error) {
	s.last = time.Now()
	taken, err := s.c.take(ctx, s.row, s.ws, taking{why: why, session: s.run.Session.ID, live: true})
	if err != nil {
		return checkpoint.Taken{}, err
	}
	s.rounds.taken = taken
	if s.watch != nil {
		s.watch.Reset(taken.Checkpoint.ID)
	}
	return taken, s.remember(ctx)
}

// remember notes what stands in the workspace, so that only later changes count.
func (s *supervisor) remember(ctx context.Context) error {
	diff, err := s.c.Workspaces.Walk(ctx, s.ws)
	if err == nil {
		s.seen = stamps(diff)
	}
	return err
}

// stop freezes the session until somebody resumes it.
func (s *supervisor) stop(ctx context.Context) error {
	if s.still {
		return nil
	}
	if !s.held {
		if err := s.process.Freeze(ctx); err != nil {
			return notStopped(err)
		}
	}
	s.still = true
	return nil
}

// notStopped says why a session could not be stopped: it has ended by itself, or what went wrong.
func notStopped(err error) error {
	if errors.Is(err, sandbox.ErrEnded) {
		return errOver
	}
	return fmt.Errorf("stop the session: %w", err)
}

// block stops an agent that cannot go on by itself and asks a person (SV-090, SV-091).
func (s *supervisor) block(ctx context.Context, subject string, why error) error {
	if err := s.stop(ctx); err != nil {
		return err
	}
	because := problem.Errorf(problem.Refused, "sallyport change resume "+string(s.row.ID), "Interactive mode failure: %s: the agent is stopped: %w", s.row.ID, why)
	err := s.shift(ctx, ledger.Move{Event: change.Block, By: audit.Host, Subject: subject, Blocked: change.InteractiveModeFailure, Because: because})
	if err != nil {
		s.still = false
		if !s.held {
			err = errors.Join(err, s.process.Thaw())
		}
	}
	return err
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
		return fmt.Errorf("the agent's session did not answer: %w", context.Cause(ctx))
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the agent's session did not answer: %w", context.Cause(ctx))
	}
}
