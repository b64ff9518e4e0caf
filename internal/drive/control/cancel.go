package control

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Cancel withdraws a change. A step that is under way is stopped; what it had is kept.
// What is in the journal of landings is not stopped in the middle, and what has ended stays as it is (conflict).
func (c *Controller) Cancel(ctx context.Context, changeID id.Change, by audit.Actor, reason string) error {
	if err := c.Owner.MayDecide(by); err != nil {
		return err
	}
	return c.end(ctx, changeID, ledger.Withdrawn{By: by, Reason: reason})
}

// end withdraws a change, whoever wants it. What the host ends may have ended by itself before it comes to that: that is as good.
func (c *Controller) end(ctx context.Context, changeID id.Change, because ledger.Withdrawn) error {
	said := &because
	moves := c.Feed.Subscribe(changeID) // before it can move, so that the move is not missed
	defer c.Feed.Unsubscribe(moves)
	for good := because.By == audit.Host; ; good = true { // from the second look on it may have ended between two of them
		stopping, err := c.cancel(ctx, changeID, said)
		if good && problem.KindOf(err) == problem.Conflict {
			if row, lost := c.Row(ctx, changeID); lost == nil && row.State.Final() {
				return nil
			}
		}
		if err != nil || !stopping {
			return err
		}
		if err := c.untilMoved(ctx, moves); err != nil {
			return err
		}
		if row, err := c.Row(ctx, changeID); err != nil || row.State.Final() {
			return err
		} // its step was done before it heard of it: from where it stands now, again
	}
}

// cancel withdraws a change that no step holds, or stops the step that does.
func (c *Controller) cancel(ctx context.Context, changeID id.Change, said *ledger.Withdrawn) (stopping bool, err error) {
	var row change.Row
	held, event := false, change.Cancel
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		var err error
		if row, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if said.By == audit.Host { // it may have been approved since the host looked
			if err := standing.Pending(row); err != nil {
				return err
			}
		}
		if event, err = c.Withdrawal(ctx, tx, row); err != nil {
			return err
		}
		if held = row.Holder != ""; !held {
			return c.Withdraw(ctx, tx, &row, event, *said)
		}
		if event == change.Cancel { // a way back is given up by who is there to see it
			if err := tx.RequestCancel(ctx, changeID); err != nil {
				return err
			}
		}
		row.Reason = said.Reason
		return c.Append(ctx, tx, &row, ledger.Move{By: said.By}, "asked to cancel", ledger.Now())
	})
	if err != nil {
		return false, err
	}
	if !held {
		c.Moved(row)
		c.land.StandDown(ctx, row)
		c.TidyApart(c.Lasting(), row)
		return false, nil
	}
	c.mu.Lock()
	stop := c.cancels[changeID]
	c.mu.Unlock()
	if stop == nil {
		if event == change.GivenUp {
			return false, problem.Errorf(problem.Unavailable, "sallyport change show "+string(changeID),
				"sallyport is just trying to roll %s back: cancel again once that try is over", changeID)
		}
		return false, nil // another daemon's life held it: the next step finds the request
	}
	stop(said)
	return true, nil
}

// makePatience is how long who has a group made from a conversation waits for it.
const makePatience = 30 * time.Second

// MakeGroup has a group made and waits until it is there. Errors: why it is not; problem.Unavailable if that takes too long, and then it still comes.
func (c *Controller) MakeGroup(ctx context.Context, g group.Folder, by audit.Actor) error {
	ctx, cancel := context.WithTimeoutCause(ctx, makePatience, problem.Errorf(problem.Unavailable, "sallyport group list", "the group %s is not there yet", g))
	defer cancel()
	row, err := c.Groups.Create(ctx, standing.Asked{By: by, Name: string(g)})
	if err != nil {
		return err
	}
	moves := c.Feed.Subscribe(row.ID)
	defer c.Feed.Unsubscribe(moves)
	for {
		if row, err = c.Row(ctx, row.ID); err != nil {
			return err
		}
		switch {
		case row.State == change.Finalized:
			return nil
		case row.State.Final() || row.State == change.AwaitingApproval || row.State == change.RollbackFailed:
			return problem.Errorf(problem.Conflict, "sallyport change show "+string(row.ID), "the group %s is not made: %s is %s: %s", g,
				row.ID, row.State.Words(), row.Reason)
		}
		if err := c.untilMoved(ctx, moves); err != nil {
			return err
		}
	}
}

// untilMoved waits until a change has moved.
func (c *Controller) untilMoved(ctx context.Context, moves *change.Subscription) error {
	for queue := c.Feed.Next(ctx, moves); queue != nil; queue = c.Feed.Next(ctx, moves) {
		for _, n := range queue {
			if n.Kind == "state" {
				return nil
			}
		}
	}
	return context.Cause(ctx)
}
