package supervise

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
)

// Pause stops the agent of a change where it stands, every process of it, until Resume.
func (ss *Supervisors) Pause(ctx context.Context, changeID id.Change, by audit.Actor, reason string) error {
	s, err := ss.supervised(ctx, changeID, by)
	if err != nil {
		return err
	}
	return s.please(ctx, func(ctx context.Context) error {
		if s.still {
			return problem.Errorf(problem.Conflict, "sallyport change resume "+string(changeID), "%s is %s already", changeID, s.Row.State.Words())
		}
		if err := s.stop(ctx); err != nil {
			return err
		}
		return s.shift(ctx, ledger.Move{Event: change.Pause, By: by, Reason: reason, Next: "sallyport change resume " + string(changeID)})
	})
}

// GoOn lets the agent of a change go on that stands where it was stopped. It reports whether there is one.
func (ss *Supervisors) GoOn(ctx context.Context, changeID id.Change, by audit.Actor) (stood bool, err error) {
	s := ss.watching(changeID)
	if s == nil {
		return false, nil
	}
	return true, s.please(ctx, func(ctx context.Context) error {
		if !s.still {
			return problem.Errorf(problem.Conflict, "sallyport change watch "+string(changeID),
				"the agent of %s is working: there is nothing to resume", changeID)
		}
		if err := s.shift(ctx, ledger.Move{Event: change.Resume, By: by}); err != nil {
			return err
		}
		s.still, s.failed = false, 0
		return s.process.Thaw()
	})
}

// CheckpointNow takes a checkpoint of a running agent's workspace at once, paused or not.
func (ss *Supervisors) CheckpointNow(ctx context.Context, change id.Change, by audit.Actor) (taken checkpoint.Checkpoint, err error) {
	s, err := ss.supervised(ctx, change, by)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	err = s.please(ctx, func(ctx context.Context) error {
		all, err := s.take(ctx, checkpoint.OnDemand)
		taken = all.Checkpoint
		return err
	})
	return taken, err
}
