package socket

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/drive/live"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/metric"
)

func TestAScraperNeedsNoVersionAndIsHeardByUIDAlone(t *testing.T) {
	meter := metric.New(metric.Options{})
	meter.Paused("chg-00000001", 20*time.Millisecond, nil)
	o := options(&verbs{})
	o.Owner, o.Meter = 1234, meter
	s := New(o)
	for name, tc := range map[string]struct {
		ctx  context.Context
		want int
	}{
		"owner":    {context.WithValue(t.Context(), peerKey{}, userOf(1234)), 200},
		"stranger": {context.WithValue(t.Context(), peerKey{}, userOf(1235)), 403},
		"nobody":   {t.Context(), 403},
	} {
		w := newRecorder()
		r, _ := http.NewRequestWithContext(tc.ctx, "GET", "/v1/metrics", nil) // no header of ours
		s.Handler().ServeHTTP(w, r)
		if w.status != tc.want || strings.Contains(w.body.String(), "sallyport_pause_seconds_count 1\n") != (tc.want == 200) {
			t.Errorf("%s: status %d: %.200s", name, w.status, w.body.String())
		}
	}
}

func TestMetricsComeInTheTextFormAndWithoutIds(t *testing.T) {
	meter := metric.New(metric.Options{})
	meter.Handled("chg-0a1b2c3d")(3, time.Millisecond)
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Meter = meter })
	var out strings.Builder
	if err := client.Copy(t.Context(), c, api.DaemonMetrics, api.Nothing{}, &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "# TYPE sallyport_event_seconds histogram\n") || strings.Contains(text, "chg-") {
		t.Errorf("got %.300s", text)
	}
	if status, _, header := raw(t, c, "GET", "/v1/metrics", "", map[string]string{"Accept-Encoding": "gzip"}); status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") || header.Get("Content-Encoding") != "" {
		t.Errorf("status %d, headers %v", status, header)
	}
}

func TestStatsTellsWhatModelsUsedAndHowMuchOfTheBudgetsThatIs(t *testing.T) {
	meter := metric.New(metric.Options{})
	meter.Upper("chg-00000001", 1)
	spent := live.Spending{
		State:  budget.State{Change: budget.Spent{Tokens: 1, Cost: 2}, Hour: budget.Spent{Tokens: 3, Cost: 4}, Day: budget.Spent{Tokens: 5, Cost: 6}},
		Shares: []budget.Share{{Name: budget.TokensPerHour, Used: 3, Limit: 12}},
	}
	c, _ := serve(t, &verbs{spending: spent}, func(o *Options) { o.Meter = meter })
	for of, own := range map[string]*api.Spent{"": nil, "chg-00000001": {Tokens: 1, Cost: 2}} {
		got, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{Change: of})
		want := api.Spending{Hour: api.Spent{Tokens: 3, Cost: 4}, Day: api.Spent{Tokens: 5, Cost: 6}, Change: own, Budgets: []api.Share{{Budget: "tokens_per_hour", Used: 3, Limit: 12, Percent: 25}}}
		if err != nil || !reflect.DeepEqual(got.Spending, want) {
			t.Errorf("of %q: %+v, %v", of, got.Spending, err)
		}
	}
}

func TestStatsTellsFiguresAlertsAndThoseOfOneChange(t *testing.T) {
	meter := metric.New(metric.Options{})
	meter.Taking("chg-00000001", "end").Done("valid", nil)
	meter.Paused("chg-00000001", time.Second, errors.New("it would not"))
	meter.Upper("chg-00000001", 1<<30)
	c, _ := serve(t, &verbs{}, func(o *Options) { o.Meter = meter })
	stats, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{Change: "chg-00000001"})
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, a := range stats.Alerts {
		names += a.Name + " " + a.Change + ";"
	}
	if names != "disk_change chg-00000001;pause_over_maximum ;" || stats.UpperBytes != 1<<30 || stats.ResidentBytes == 0 {
		t.Errorf("%s %+v", names, stats)
	}
	if f := stats.Change; f == nil || f.Valid != 1 || f.PausesFailed != 1 || f.UpperMaxBytes != 1<<30 {
		t.Errorf("figures %+v", stats.Change)
	}
	for _, m := range stats.Measures {
		if m.Name == "pause" && (m.P95MS != 1000 || m.TargetMS != 100 || m.MaximumMS != 500 || m.Verdict != "over maximum") {
			t.Errorf("pause %+v", m)
		}
	}
	if d, err := client.Call(t.Context(), c, api.DaemonShow, api.Nothing{}); err != nil || len(d.Alerts) != 2 {
		t.Errorf("status has %d alerts, %v", len(d.Alerts), err)
	}
	if stats, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{}); err != nil || stats.Change != nil {
		t.Errorf("%+v, %v", stats.Change, err)
	}
	for change, kind := range map[string]problem.Kind{"chg-00000002": problem.NotFound, "apr-00000001": problem.Usage, "../x": problem.Usage} {
		if _, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{Change: change}); problem.KindOf(err) != kind {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestADaemonThatMeasuresNothingAnswersAllTheSame(t *testing.T) {
	c, _ := serve(t, &verbs{})
	var out strings.Builder
	if err := client.Copy(t.Context(), c, api.DaemonMetrics, api.Nothing{}, &out); err != nil || out.Len() != 0 {
		t.Errorf("%q, %v", out.String(), err)
	}
	if stats, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{}); err != nil || len(stats.Measures) != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}
