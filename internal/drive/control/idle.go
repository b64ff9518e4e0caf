package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/store"
)

// idled ends a change whose agent changed nothing.
func idled(row change.Row, cp checkpoint.Checkpoint) ledger.Move {
	return ledger.Move{
		Event: change.Unchanged, By: audit.Host, Subject: string(cp.ID), Verb: "checked", Outcome: change.NothingToDo,
		Reason: unchanged(cp), Next: "sallyport change log " + string(row.ID), Digests: map[string]string{"tree": string(cp.Tree)},
	}
}

// idle ends a change that has nothing to land by what the checks say of its base: that is no success of the agent's.
func (c *Controller) idle(ctx context.Context, row change.Row, o judge.Offer) error {
	results, why, err := c.checks.Check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return c.refused(ctx, row, o, results, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID),
			"the agent changed nothing, and the base fails its own checks: %w", why), "refused by a check")
	}
	row, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return c.Move(ctx, tx, row, idled(*row, *o.From)) })
	if err == nil {
		c.tidy(c.Lasting(), row)
	}
	return err
}
