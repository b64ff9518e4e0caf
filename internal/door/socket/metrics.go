package socket

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/live"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/metric"
)

// scrapesMax is how many scrapes are answered at once; more are told to come again.
const scrapesMax = 4

// figures answers what was measured and spent.
type figures struct {
	part  Spending
	meter *metric.Set
}

// metrics answers in Prometheus text form. A scraper is no client of ours: it names no version.
func (n figures) metrics() func(*door, http.ResponseWriter, *http.Request, api.Nothing) {
	h := promhttp.HandlerFor(n.meter, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, DisableCompression: true, MaxRequestsInFlight: scrapesMax,
	})
	return func(_ *door, w http.ResponseWriter, r *http.Request, _ api.Nothing) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime))
		h.ServeHTTP(w, r)
	}
}

// Spending says what models used in the last hour and day and, with a change, by it, and how much of the budgets that is.
type Spending interface {
	Spending(ctx context.Context, change id.Change) (live.Spending, error)
}

// stats answers with all figures, and those of one change if it is named.
func (n figures) stats(ctx context.Context, _ audit.Actor, in api.OfChange) (out api.Stats, err error) {
	var of *api.Figures
	if in.Change != "" {
		f, ok := n.meter.Of(id.Change(in.Change))
		if !ok {
			return out, problem.Errorf(problem.NotFound, "sallyport change show "+in.Change,
				"no figures of %s are kept: nothing was measured since this daemon began", in.Change)
		}
		of = figuresOf(f)
	}
	spent, err := n.part.Spending(ctx, id.Change(in.Change))
	if err != nil {
		return out, err
	}
	out = statsOf(n.meter.Report())
	out.Change, out.Spending = of, spendingOf(spent, id.Change(in.Change))
	return out, nil
}

func spendingOf(s live.Spending, of id.Change) api.Spending {
	spent := func(s budget.Spent) api.Spent { return api.Spent{Tokens: s.Tokens, Cost: s.Cost} }
	out := api.Spending{Hour: spent(s.Hour), Day: spent(s.Day), Budgets: each(s.Shares, func(b budget.Share) api.Share {
		return api.Share{Budget: string(b.Name), Used: b.Used, Limit: b.Limit, Percent: b.Percent()}
	})}
	if of != "" {
		own := spent(s.Change)
		out.Change = &own
	}
	return out
}

func statsOf(r metric.Report) api.Stats {
	return api.Stats{
		Alerts: each(r.Alerts, alertOf), Measures: each(r.Rows, measureOf),
		Counts:  each(r.Counts, func(c metric.Count) api.Count { return api.Count{Name: c.Name, Count: c.Count} }),
		Running: r.Running, Waiting: r.Waiting, QueueDepth: r.QueueDepth, UpperBytes: r.UpperBytes,
		WatchBytes: r.WatchBytes, ResidentBytes: r.Process.ResidentBytes, Descriptors: r.Process.Descriptors,
	}
}

func alertOf(a metric.Alert) api.Alert {
	return api.Alert{
		Name: a.Name, Text: a.Text, Since: a.Since, LastedMS: a.Lasted.Milliseconds(), Change: string(a.Change),
		Figure: a.Figure, Limit: a.Limit, Unit: a.Unit,
	}
}

func measureOf(r metric.Row) api.Measure {
	return api.Measure{
		Name: string(r.Measure), Count: r.Count, Window: r.Window,
		P50MS: milliseconds(r.P50), P95MS: milliseconds(r.P95), P99MS: milliseconds(r.P99), MaxMS: milliseconds(r.Max),
		TargetMS: milliseconds(r.Target), MaximumMS: milliseconds(r.Maximum), Verdict: string(r.Verdict()),
	}
}

func figuresOf(f metric.Figures) *api.Figures {
	return &api.Figures{
		Change: string(f.Change), Valid: f.Valid, Invalid: f.Invalid, Skipped: f.Skipped, Failed: f.Failed,
		LastMS: milliseconds(f.Last), LongestMS: milliseconds(f.Longest),
		Pauses: f.Pauses, PausesFailed: f.PausesFailed, Reverts: f.Reverts,
		Events: f.Events, EventLongestMS: milliseconds(f.EventLongest), QueueDepth: f.QueueDepth,
		UpperBytes: f.UpperBytes, UpperMaxBytes: f.UpperMaxBytes, MemoryBytes: f.MemoryBytes,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
