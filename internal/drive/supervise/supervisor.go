package supervise

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/store"
)

// supervisor watches one running session. It is the only one that takes checkpoints of it,
// so there is never more than one at a time (SV-044); others ask it.
type supervisor struct {
	Parts
	work.Work // its row is as this supervisor wrote it last
	gate      *gate
	ws        workspace.Workspace
	run       *session.Running
	mode      session.Supervision // as it was when the session began

	asks    chan ask
	over    chan struct{}   // closed when nobody answers any more
	process sandbox.Process // once it runs
	still   bool            // it stands until somebody resumes it
	held    bool            // it stands for what is being done now

	last   time.Time        // of the last checkpoint
	seen   map[string]int64 // what the last checkpoint saw: path → when it changed
	events *events          // that say when to look
	failed int              // failed checkpoints in a row
	again  bool             // this session cannot go on: another begins from row.From
	limit  *sandbox.Limit   // that the host ended it for

	rounds rounds       // of a program with turns
	broke  <-chan error // why a request to its model was refused

	messages *messages      // to the agent
	beside   sync.WaitGroup // checks that run; they end with the session
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
			s.endTurn(ctx, turn)
		case v := <-s.verdicts():
			s.weigh(ctx, v)
		case why := <-s.broke:
			s.stopUnpaid(ctx, why)
		case <-s.messages.deaf:
			s.finish()
		case <-s.rounds.late:
			s.outstays()
		case <-s.events.crossed():
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
	if s.Row.State == change.Working {
		return
	}
	if err := s.shift(ctx, ledger.Move{Event: change.Resume, By: audit.Host, Reason: "the session ended"}); err != nil {
		s.Log.Error("the end of a session was not recorded", "change", s.Row.ID, "error", err)
	}
}

// shift moves the row and goes on holding it.
func (s *supervisor) shift(ctx context.Context, m ledger.Move) error {
	m.Keep = true
	row, err := s.InTx(ctx, s.Row, func(tx store.Tx, row *change.Row) error { return s.Move(ctx, tx, row, m) })
	s.Row = row
	return err
}

// amend writes what change changes in the row, which stays in its state, and an entry that says why.
func (s *supervisor) amend(ctx context.Context, m ledger.Move, verb string, change func(*change.Row)) error {
	row := s.Row
	err := s.DB.InTx(ctx, func(tx store.Tx) error {
		row = s.Row
		change(&row)
		if err := tx.MoveChange(ctx, s.Row.State, row); err != nil {
			return err
		}
		said := row
		said.Reason = m.Reason
		return s.Append(ctx, tx, &said, m, verb, ledger.Now())
	})
	if err == nil {
		s.Row = row
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
