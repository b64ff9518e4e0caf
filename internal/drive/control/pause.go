package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/redo"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/store"
)

// Pause stops the agent of a change where it stands, every process of it, until Resume.
func (c *Controller) Pause(ctx context.Context, changeID id.Change, by audit.Actor, reason string) error {
	s, err := c.supervised(ctx, changeID, by)
	if err != nil {
		return err
	}
	return s.please(ctx, func(ctx context.Context) error {
		if s.still {
			return problem.Errorf(problem.Conflict, "sallyport change resume "+string(changeID), "%s is %s already", changeID, s.row.State)
		}
		if err := s.stop(ctx); err != nil {
			return err
		}
		return s.shift(ctx, ledger.Move{Event: change.Pause, By: by, Reason: reason, Next: "sallyport change resume " + string(changeID)})
	})
}

// Resume lets a paused or blocked change go on: its agent where it stands, or, if that was lost
// with its daemon, a new session.
func (c *Controller) Resume(ctx context.Context, changeID id.Change, by audit.Actor) error {
	if err := c.Owner.MayDecide(by); err != nil {
		return err
	}
	at, err := c.Row(ctx, changeID)
	if err == nil {
		err = c.waitsForBudget(ctx, at)
	}
	if err != nil {
		return err
	}
	if s := c.watching(changeID); s != nil {
		return s.please(ctx, func(ctx context.Context) error {
			if !s.still {
				return problem.Errorf(problem.Conflict, "sallyport change watch "+string(changeID), "the agent of %s is working: there is nothing to resume", changeID)
			}
			if err := s.shift(ctx, ledger.Move{Event: change.Resume, By: by}); err != nil {
				return err
			}
			s.still, s.failed = false, 0
			return s.process.Thaw()
		})
	}
	var row change.Row
	err = c.DB.InTx(ctx, func(tx store.Tx) (err error) {
		if row, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if _, err := row.State.Next(change.Resume); err != nil {
			next, err := redo.Onward(ctx, tx, row)
			if err != nil {
				return err
			}
			return problem.Errorf(problem.Conflict, next, "%s is %s: only a change that is paused or blocked can be resumed", changeID, row.State)
		}
		return c.Move(ctx, tx, &row, ledger.Move{Event: change.Resume, By: by})
	})
	if err == nil {
		c.Moved(row)
	}
	return err
}

// CheckpointNow takes a checkpoint of a running agent's workspace at once, paused or not.
func (c *Controller) CheckpointNow(ctx context.Context, change id.Change, by audit.Actor) (taken checkpoint.Checkpoint, err error) {
	s, err := c.supervised(ctx, change, by)
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

// supervised returns who watches a change's agent, for somebody who may ask.
func (c *Controller) supervised(ctx context.Context, change id.Change, by audit.Actor) (*supervisor, error) {
	if err := c.Owner.MayDecide(by); err != nil {
		return nil, err
	}
	row, err := c.Row(ctx, change)
	if err != nil {
		return nil, err
	}
	if s := c.watching(change); s != nil {
		return s, nil
	}
	return nil, problem.Errorf(problem.Conflict, "sallyport change show "+string(change), "no agent of %s runs: it is %s", change, row.State)
}
