package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/trial"
)

// A host whose database has another schema than the one before does, while it is on trial, nothing but its trial: what it wrote elsewhere
// could not be taken back.

// Only has no other change than this take a step until end is called. Steps that are under way go on.
func (c *Controller) Only(of id.Change) (end func()) {
	c.only.Store(&of)
	return func() {
		c.only.Store(nil)
		c.Poke()
	}
}

// claim takes the change that is due longest, or the only one that may take a step.
func (c *Controller) claim(ctx context.Context) (change.Row, bool, error) {
	only := c.only.Load()
	if only == nil {
		return c.Claim(ctx, "")
	}
	return c.Claim(ctx, *only)
}

// onlyEvery is how often it is looked whether the only change is due, or whether all may take steps again.
const onlyEvery = 250 * time.Millisecond

// pass waits a moment.
func (c *Controller) pass(ctx context.Context) {
	timer := time.NewTimer(onlyEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// awaitAll waits until every change may take steps; false if ctx ended first.
func (c *Controller) awaitAll(ctx context.Context) bool {
	for c.only.Load() != nil && ctx.Err() == nil {
		c.pass(ctx)
	}
	return ctx.Err() == nil
}

// TakeHostBack has what is on trial as the host go back, without Run: it is what the old host's program does before it serves again. A
// landing that was under way comes to its end first. What cannot go back yet is written down as that, and is no error.
func (c *Controller) TakeHostBack(ctx context.Context, of id.Change, d trial.Decision) error {
	if err := c.TakeOver(ctx); err != nil {
		return fmt.Errorf("take over unfinished work: %w", err)
	}
	row, err := c.Row(ctx, of)
	if problem.KindOf(err) == problem.NotFound { // it has never landed by this database
		return nil
	}
	if err != nil {
		return err
	}

	if row.State == change.Landing {
		err := c.land.Land(ctx, row)
		if err != nil && !errors.Is(err, change.ErrMoved) {
			c.Log.Warn("a landing stays open until the old host serves, which takes it up", "change", of, "error", err)
		}
		if row, err = c.Row(ctx, of); err != nil {
			return err
		}
	}
	if row.State == change.Finalized { // by a host that wrote so itself: the keeper knows of no code
		c.Log.Error("the keeper brings the old host back, and the change on trial is written down as kept: its files stay", "change", of,
			"next", "sallyport rollback "+string(of))
	}
	if row.State != change.InTrial {
		return nil
	}
	return c.confirm.TakeHostBack(ctx, row, d)
}
