package control

import (
	"context"
	"slices"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
)

// tidy removes the workspace of a change that has ended. Its work stays under its refs: as
// long as it has none, the workspace stays. What is not done now is done by the sweep. It is called by
// the step that ended the change; others call tidyApart.
func (c *Controller) tidy(ctx context.Context, row change.Row) {
	c.forgetVerdict(row.ID)
	if row.Base == "" || row.Request.Kind == request.Revert {
		return
	}
	if c.keepsTree(ctx, row) {
		return
	}
	if err := c.keepWork(ctx, row); err != nil {
		c.Log.Warn("the work of a change could not be recorded, so its workspace stays", "change", row.ID, "error", err)
		return
	}
	if is, err := c.Row(ctx, row.ID); err != nil || !is.State.Final() {
		return // it was taken up again meanwhile
	}
	if err := c.Workspaces.Remove(ctx, row.ID); err != nil {
		c.Log.Warn("a workspace was not removed", "change", row.ID, "error", err)
	}
	c.trim(ctx)
}

// trim keeps the cache of base layers within its bounds, now that fewer may be in use.
func (c *Controller) trim(ctx context.Context) {
	if _, err := c.Workspaces.TrimLayers(ctx); err != nil && ctx.Err() == nil {
		c.Log.Warn("the cache of base layers could not be trimmed", "error", err)
	}
	if _, err := c.Workspaces.TrimStocks(ctx); err != nil && ctx.Err() == nil {
		c.Log.Warn("the caches of setups and checks could not be trimmed", "error", err)
	}
}

// tidyApart tidies up after a change that no step holds; a step that begins meanwhile waits.
func (c *Controller) tidyApart(ctx context.Context, row change.Row) {
	leave, err := c.works.Take(ctx, row.ID)
	if err != nil {
		return
	}
	defer leave()
	c.tidy(ctx, row)
}

// keepsTree reports whether the tree of a session that failed is to stay for a person to look at (SV-033).
func (c *Controller) keepsTree(ctx context.Context, row change.Row) bool {
	if row.State != change.Failed {
		return false
	}
	mode, err := c.judge.Mode(ctx, row)
	return err == nil && mode.Strategy == session.Shadow && mode.KeepOnFailure
}

// keepWork puts what the last session of a change did under a ref, unless it is there already.
func (c *Controller) keepWork(ctx context.Context, row change.Row) error {
	sessions, err := c.Sessions(ctx, row.ID)
	if err != nil || len(sessions) == 0 {
		return err
	}
	last := sessions[len(sessions)-1]
	taken, err := c.Checkpoints(ctx, row.ID)
	if err != nil || slices.ContainsFunc(taken, func(cp checkpoint.Checkpoint) bool {
		return cp.Session == last.ID && !cp.At.Before(last.Started) && (cp.Trigger == checkpoint.AtEnd || cp.Trigger == checkpoint.Interrupted)
	}) {
		return err
	}
	ws, err := c.Workspaces.Open(ctx, c.opener.Spec(row))
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	w, err := c.opener.Open(ctx, row)
	if err != nil {
		return err
	}
	_, err = c.takes.Take(ctx, w, ws, supervise.Taking{Why: checkpoint.Interrupted, Session: last.ID, Since: last.Started})
	return err
}

// sweep tidies up after changes that ended when a daemon had no time left to do it.
func (c *Controller) sweep(ctx context.Context) {
	there, err := c.Workspaces.Changes()
	if err != nil {
		c.Log.Warn("the workspaces could not be listed", "error", err)
	}
	for _, changeID := range there {
		row, err := c.Row(ctx, changeID)
		switch {
		case err != nil: // package storage gives its work a ref first
			c.Log.Warn("a workspace has no change", "workspace", changeID, "error", err)
		case row.State.Final():
			c.tidyApart(ctx, row)
		}
	}
	c.trim(ctx)
}
