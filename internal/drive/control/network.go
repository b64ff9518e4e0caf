package control

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/live"
)

// Spending sums what models of all agents used in the last hour and day and, with a change, by it.
func (c *Controller) Spending(ctx context.Context, change id.Change) (live.Spending, error) {
	return c.budget.Spending(ctx, change)
}
