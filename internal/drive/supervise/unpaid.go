package supervise

import (
	"context"
	"errors"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
)

// lacking is why a change waits whose agent's model answers no more, and what a person is told of it.
func lacking(of id.Change, why error) (blocked string, because error) {
	if errors.Is(why, credential.ErrMissing) {
		resume := "sallyport change resume " + string(of)
		return change.CredentialMissing, problem.Errorf(problem.AgentFailed, resume, "%w; then: %s", why, resume)
	}
	return change.BudgetUsedUp, overspent(of, why)
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

// stopUnpaid stops an agent that may ask its model no more and asks a person.
func (s *supervisor) stopUnpaid(ctx context.Context, why error) {
	s.rounds.unpaid = true
	if s.idle() {
		return
	}
	err := s.stop(ctx)
	if err == nil {
		blocked, because := lacking(s.Row.ID, why)
		err = s.shift(ctx, ledger.Move{Event: change.Block, By: audit.Host, Subject: string(s.run.Session.ID), Blocked: blocked, Because: because})
		if err != nil {
			s.still = false
			err = errors.Join(err, s.process.Thaw())
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errOver) {
		s.Log.Error("an agent whose budget is used up, or whose login has ended, could not be paused, so it was ended", "change", s.Row.ID, "error", err)
		s.process.Kill()
	}
}
