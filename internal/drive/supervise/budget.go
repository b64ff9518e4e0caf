package supervise

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/budget"
	"sallyport/internal/store"
)

// waitForBudget blocks a change whose agent could ask its model nothing: it goes on when somebody raises the budget and resumes it.
func (ss *Supervisors) waitForBudget(ctx context.Context, row change.Row, because error) error {
	_, err := ss.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return ss.Move(ctx, tx, row, ledger.Move{Event: change.Block, By: audit.Host, Blocked: change.BudgetUsedUp, Because: overspent(row.ID, because)})
	})
	if err != nil {
		return fmt.Errorf("wait for a budget: %w", err)
	}
	return nil
}

// waitForKey blocks a change whose agent cannot work without its key: it goes on when somebody hands it over.
func (ss *Supervisors) waitForKey(ctx context.Context, row change.Row, because error) error {
	_, err := ss.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return ss.Move(ctx, tx, row, ledger.Move{Event: change.Block, By: audit.Host, Blocked: change.CredentialMissing,
			Because: problem.Errorf(problem.Unavailable, "", "%s waits for the key of its agent's model: %w", row.ID, because)})
	})
	if err != nil {
		return fmt.Errorf("wait for a key: %w", err)
	}
	return nil
}

// overspent says to a person why an agent of a change is stopped, and how it goes on.
func overspent(change id.Change, why error) error {
	resume := "sallyport change resume " + string(change)
	if errors.Is(why, budget.ErrChangeUsedUp) {
		return problem.Errorf(problem.AgentFailed, resume, "%w; raise that budget, then: %s", why, resume)
	}
	if errors.Is(why, budget.ErrUsedUp) {
		return problem.Errorf(problem.AgentFailed, resume, "%w; raise that budget, or wait until the hour or day is over, then: %s", why, resume)
	}
	return problem.Errorf(problem.AgentFailed, resume, "the agent may not ask its model: %w; then: %s", why, resume)
}

// overspent stops an agent that may ask its model no more and asks a person.
func (s *supervisor) overspent(ctx context.Context, why error) {
	s.rounds.unpaid = true
	if s.idle() {
		return
	}
	err := s.stop(ctx)
	if err == nil {
		err = s.shift(ctx, ledger.Move{Event: change.Block, By: audit.Host, Subject: string(s.run.Session.ID), Blocked: change.BudgetUsedUp, Because: overspent(s.Row.ID, why)})
		if err != nil {
			s.still = false
			err = errors.Join(err, s.process.Thaw())
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errOver) {
		s.Log.Error("an agent whose budget is used up could not be paused, so it was ended", "change", s.Row.ID, "error", err)
		s.process.Kill()
	}
}

// goOn tells an agent whose turn failed because its budget was used up that there is more. It is no round: nothing was wrong.
func (s *supervisor) goOn(ctx context.Context) {
	const words = "Your model refused to answer because a budget was used up. It answers again. Go on where you stopped."
	s.rounds.failure = ""
	s.telling.Go(func() {
		d := s.run.Talk.Tell(ctx, words)
		s.recordDelivery(context.WithoutCancel(ctx), s.Row.ID, string(s.run.Session.ID), request.FirstLine(words), audit.Host, d)
		s.heard(d)
	})
}
