package control

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

// stillLacking refuses to resume a change whose budget is still used up, or whose agent's login has still ended.
func (c *Controller) stillLacking(ctx context.Context, row change.Row) error {
	if row.Blocked != change.BudgetUsedUp && row.Blocked != change.CredentialMissing {
		return nil
	}
	e, err := c.Equip(row.ID, row.Request)
	if err != nil || row.Blocked == change.CredentialMissing {
		return err
	}
	p, err := e.Program()
	if err != nil {
		return err
	}
	c.budget.Report(ctx, row.ID.Subject()) // the budgets may be others now
	err = c.budget.Afford(ctx, row.ID.Subject(), row.Request.Agent, p.Model)
	if err == nil && row.Request.Kind == request.Swap {
		var runner config.Runner
		if runner, err = c.Groups.Runner(ctx, group.Folder(row.Request.Group)); err == nil {
			err = c.budget.AffordGroup(ctx, row.Request.Group, live.LimitsOf(runner.Budgets))
		}
	}
	if err != nil {
		return problem.Errorf(problem.Refused, "sallyport stats", "%s cannot be resumed: %w", row.ID, err)
	}
	return nil
}

// Spending sums what models of all agents used in the last hour and day and, with a change, by it.
func (c *Controller) Spending(ctx context.Context, change id.Change) (live.Spending, error) {
	return c.budget.Spending(ctx, change.Subject())
}
