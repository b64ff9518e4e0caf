package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/store"
)

// RestoreTo makes an unlanded change's tree that of one of its checkpoints: while its agent
// works, on the copy that the next session gets, or as what a person is asked about.
func (c *Controller) RestoreTo(ctx context.Context, ref id.Checkpoint, by audit.Actor) (checkpoint.Checkpoint, error) {
	if err := c.Owner.MayDecide(by); err != nil {
		return checkpoint.Checkpoint{}, err
	}
	cp, err := c.Checkpoint(ctx, ref)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	row, err := c.Row(ctx, cp.Change)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	if cp.Base != git.OID(row.Base) {
		return checkpoint.Checkpoint{}, problem.Errorf(problem.Conflict, "sallyport checkpoint list "+string(row.ID),
			"%s was taken on an earlier commit of %s than %s stands on now: restoring it would undo what the branch got since", cp.ID,
			row.Request.Branch, row.ID)
	}
	if taken, stood, err := c.RestoreRunning(ctx, cp, by); stood {
		return taken, err
	}
	switch row.State {
	case change.AwaitingApproval:
		return cp, c.submissions.OfferAgain(ctx, row, cp, by)
	case change.Paused, change.Blocked:
		row, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
			row.From, row.Chosen, row.Rollbacks = string(cp.Commit), cp.ID, row.Rollbacks+1
			return c.Move(ctx, tx, row, ledger.Move{Event: change.Resume, By: by, Verb: "restored", Subject: string(cp.ID),
				Reason: "the agent starts again from " + string(cp.ID)})
		})
		return cp, err
	}
	return checkpoint.Checkpoint{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(row.ID),
		"%s is %s: only a change that an agent works on, or that waits for a person, can be restored to a checkpoint", row.ID, row.State.Words())
}
