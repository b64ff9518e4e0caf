package daemon

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/door/api"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/metric"
)

// alerted logs an alert when it is raised and when it is over.
func (d *Daemon) alerted(a metric.Alert) {
	if a.Cleared {
		d.log.Info("alert is over", "alert", a.Name)
		return
	}
	d.log.Warn("alert", "alert", a.Name, "text", a.Text, "figure", a.Figure, "limit", a.Limit, "unit", a.Unit)
}

// budgets is how much of the budgets of all changes is used.
func (d *Daemon) budgets() ([]budget.Share, error) {
	if d.control == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), budgetsPatience)
	defer cancel()
	s, err := d.control.Spending(ctx, "")
	return s.Shares, err
}

// budgetsPatience is how long who looks at the figures waits for the budgets.
const budgetsPatience = 5 * time.Second

// checkMeasures says in one line whether any figure is over its limit.
func (d *Daemon) checkMeasures() api.Check {
	alerts := d.meter.Alerts()
	if len(alerts) == 0 {
		return api.Check{Name: "measures", OK: true, Detail: "no alert (sallyport stats)"}
	}
	detail := alerts[0].Text
	if more := len(alerts) - 1; more > 0 {
		detail += fmt.Sprintf(" (and %d more)", more)
	}
	return api.Check{Name: "measures", Mark: "over", Detail: detail, Fix: "sallyport stats"}
}
