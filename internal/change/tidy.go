package change

import (
	"context"

	"sallyport/internal/store"
)

// tidy removes the workspace of a change that has ended. Its work stays under its refs.
// What cannot be removed now is found by the sweep.
func (c *Controller) tidy(ctx context.Context, row store.Change) {
	if row.Base == "" {
		return
	}
	if err := c.Workspaces.Remove(ctx, c.spec(row)); err != nil {
		c.Log.Warn("a workspace was not removed", "change", row.ID, "error", err)
	}
}
