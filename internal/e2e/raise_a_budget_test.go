package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
	"sallyport/internal/port/agent/agenttest/modeltest"
)

// TestABudgetUsedUpInTheMiddleIsRaisedAndTheWorkLands is the whole way, on each wire of the api agent: the model's own answers are counted, its
// price is the owner's, and a daemon that dies meanwhile forgets nothing.
func TestABudgetUsedUpInTheMiddleIsRaisedAndTheWorkLands(t *testing.T) {
	if !apart(t) {
		return
	}
	for _, wire := range []string{"messages", "chat", "responses"} {
		t.Run(wire, func(t *testing.T) {
			model := modeltest.Start(t)
			model.Converse("", modeltest.Turn{Calls: []modeltest.Call{modeltest.Write("one.txt", "1\n")}, Usage: modeltest.Usage{Input: 700, Cached: 300, Output: 20}},
				modeltest.Turn{Calls: []modeltest.Call{modeltest.Write("two.txt", "2\n")}, Usage: modeltest.Usage{Input: 1000, Cached: 0, Output: 30}},
				modeltest.Turn{Text: "Done.", Usage: modeltest.Usage{Input: 5, Cached: 1000, Output: 7}})
			w := newWorld(t)
			settings := func(budgets string) {
				text := fmt.Sprintf("agents:\n  api: {wire: %s, base: '%s', model: test-model, price: {input: 1.5, cached: 0.1, output: 20}}\nbudgets: {%s}\n", wire, model.URL, budgets)
				disktest.Put(t, filepath.Join(w.home, "sallyport.yaml"), text, 0o600)
			}
			w.configure(t, nil)
			settings("tokens_per_change: 2000, cost_per_day: 10")
			d := w.begin(t, []string{w.bin, "daemon", "run", "--home", w.home})
			c := d.client(t, w.place)
			ch, err := w.hire(t.Context(), c, "Write two files", nil)
			if err != nil {
				t.Fatal(err)
			}
			w.change = ch.ID
			blocked := func(which string) api.Detail {
				t.Helper()
				var at api.Detail
				await(t, "the change to be blocked, or to rest", func() (bool, error) {
					var err error
					at, err = client.Call(t.Context(), c, api.ChangeShow, ch.ID)
					return at.Change.State == api.Blocked || at.Change.State == api.AwaitingApproval || api.Final(at.Change.State), err
				})
				if at.Change.State != api.Blocked || at.Change.BlockedReason != api.BudgetUsedUp || !strings.Contains(at.Change.Reason, which) || at.Change.Next != "sallyport change resume "+ch.ID {
					t.Fatalf("%s (%s): %s, next %q\n%s", at.Change.State, at.Change.BlockedReason, at.Change.Reason, at.Change.Next, w.said())
				}
				return at
			}
			at := blocked("2,000 tokens for this change, and 2,050 were used (raise tokens_per_change below budgets: in sallyport.yaml)")
			if len(at.Usage) != 1 || at.Usage[0] != (api.Usage{Model: "test-model", Requests: 2, Input: 1700, Cached: 300, Output: 50, Cost: 2550 + 30 + 1000}) {
				t.Errorf("used %+v", at.Usage)
			}
			if err := client.Do(t.Context(), c, api.ChangeResume, ch.ID); problem.KindOf(err) != problem.Refused {
				t.Errorf("it goes on though nothing was raised: %v", err)
			}
			if wire == "chat" { // in another life of the daemon
				if err := d.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				d.end(t, w.place)
				nobody(t)
				c = w.start(t)
				if blocked("2,050 were used"); client.Do(t.Context(), c, api.ChangeResume, ch.ID) == nil {
					t.Error("it goes on in another life")
				}
			}
			before := len(model.Requests())
			settings("tokens_per_change: 20000, cost_per_day: 10")
			if err := client.Do(t.Context(), c, api.ChangeResume, ch.ID); err != nil {
				t.Fatal(err)
			}
			if at := rest(t, c, ch.ID, nil); at.State != api.AwaitingApproval {
				t.Fatalf("%s: %s\n%s\n%s", at.State, at.Reason, transcript(t, c, ch.ID), w.said())
			}
			if before != 2 || len(model.Requests()) != 3 {
				t.Errorf("the model was asked %d times, then %d", before, len(model.Requests()))
			}
			at, err = client.Call(t.Context(), c, api.ChangeShow, ch.ID)
			if want := (api.Usage{Model: "test-model", Requests: 3, Input: 1705, Cached: 1300, Output: 57, Cost: 3580 + 248}); err != nil || len(at.Usage) != 1 || at.Usage[0] != want {
				t.Errorf("used %+v, %v", at.Usage, err)
			}
			if at.Proposal == nil || at.Proposal.Card.Used != "used 3,062 tokens, 0.003828" {
				t.Errorf("the card says %+v", at.Proposal)
			}
			stats, err := client.Call(t.Context(), c, api.StatsShow, api.OfChange{Change: ch.ID})
			if err != nil || stats.Spending.Hour != (api.Spent{Tokens: 3062, Cost: 3828}) || stats.Spending.Day != stats.Spending.Hour || *stats.Spending.Change != stats.Spending.Hour || len(stats.Spending.Budgets) != 2 {
				t.Errorf("%+v, %v", stats.Spending, err)
			}
			var scrape strings.Builder
			if err := client.Copy(t.Context(), c, api.DaemonMetrics, api.Nothing{}, &scrape); err != nil || !strings.Contains(scrape.String(), "\nsallyport_budget_used_ratio{budget=\"tokens_per_change\"} 0.1531\n") {
				t.Errorf("%v: %s", err, scrape.String())
			}
			if err := approve(t.Context(), c, ch.ID); err != nil {
				t.Fatal(err)
			}
			if at := rest(t, c, ch.ID, nil); at.State != api.Finalized {
				t.Errorf("%s: %s", at.State, at.Reason)
			}
			w.stop(t, c)
		})
	}
}
