package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/store"
)

// How a change ends that has nothing to land. An agent that did nothing is not green.
const (
	NothingToDo     = "nothing_to_do"     // its agent changed nothing, and the checks of the base pass, if there are any
	BaseFailsChecks = "base_fails_checks" // its agent changed nothing, and the base fails its own checks
)

// checks is how many a change has to pass.
func (c *Controller) checks(ctx context.Context, row store.Change) (int, error) {
	_, judging, err := c.grounds(ctx, row)
	return len(row.Request.Checks) + len(judging.Checks), err
}

// idled ends a change whose agent changed nothing.
func idled(row store.Change, cp checkpoint.Checkpoint) Move {
	return Move{
		Event: Unchanged, By: audit.Host, Subject: string(cp.ID), Verb: "checked", Outcome: NothingToDo,
		Reason: unchanged(cp), Next: "sallyport change log " + string(row.ID), Digests: map[string]string{"tree": string(cp.Tree)},
	}
}

// idle ends a change that has nothing to land by what the checks say of its base: that is no success of the agent's.
func (c *Controller) idle(ctx context.Context, row store.Change, o offer) error {
	results, why, err := c.check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return c.refused(ctx, row, o, results, problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID),
			"the agent changed nothing, and the base fails its own checks: %w", why), "refused by a check")
	}
	row, err = c.inTx(ctx, row, func(tx store.Tx, row *store.Change) error { return c.move(ctx, tx, row, idled(*row, *o.from)) })
	if err == nil {
		c.tidy(c.lasting(), row)
	}
	return err
}
