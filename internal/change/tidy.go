package change

import (
	"context"

	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// tidy removes the workspace of a change that has ended. Its work stays under its refs.
// What cannot be removed now is found by the sweep.
func (c *Controller) tidy(ctx context.Context, row store.Change) {
	if row.Base == "" {
		return
	}
	if err := c.Workspaces.Remove(ctx, row.ID); err != nil {
		c.Log.Warn("a workspace was not removed", "change", row.ID, "error", err)
	}
}

// discard takes a throw-away workspace away, also after its caller was cancelled.
func (c *Controller) discard(ctx context.Context, w workspace.Workspace) {
	if err := c.Workspaces.Discard(context.WithoutCancel(ctx), w); err != nil {
		c.Log.Warn("a throw-away workspace was not removed", "change", w.Spec.Change, "error", err)
	}
}
