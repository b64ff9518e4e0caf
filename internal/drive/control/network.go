package control

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
)

// openWay opens the way out of one sandbox of a change.
func (c *Controller) openWay(ctx context.Context, row change.Row, o live.Outgoing) (live.Way, error) {
	o.Change, o.Agent, o.Asked = row.ID, row.Request.Agent, row.Request.Egress
	return c.ways.Open(ctx, o)
}

// Spending sums what models of all agents used in the last hour and day and, with a change, by it.
func (c *Controller) Spending(ctx context.Context, change id.Change) (live.Spending, error) {
	return c.budget.Spending(ctx, change)
}
