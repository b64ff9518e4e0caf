package control

import (
	"context"

	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
)

// unlock removes the locks that a git which died with the machine has left on refs that are still to be moved.
func (c *Controller) unlock(ctx context.Context) error {
	rows, err := c.List(ctx, change.Filter{States: change.Open(), Limit: ledger.OpenMax})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := c.Workspaces.Repositories.Unlock(ctx, row.Request.Project, row.ID); err != nil {
			c.Log.Warn("a lock on the refs of a change could not be removed", "change", row.ID, "error", err) // git names it when it is in the way
		}
	}
	return nil
}
