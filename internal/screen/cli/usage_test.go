package cli

import (
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestWhatModelsUsedIsShownByModelAndHarmlessly(t *testing.T) {
	var b strings.Builder
	printUsage(sheet{w: &b, width: 200}, []api.Usage{
		{Model: "m" + hostile, Requests: 7, Input: 10_000, Cached: 2_000, Output: 345, Cost: 120_000},
		{Model: "", Requests: 1, Estimated: 1, Unpriced: 1, Input: 5, Output: 1},
		{Model: "half", Requests: 2, Unpriced: 1, Input: 5, Output: 1, Cost: 1},
	})
	got := b.String()
	for _, want := range []string{
		"what its models used:\n", ": 12,345 tokens (in 10,000, cached 2,000, out 345), 0.12, 7 requests\n",
		"other models: 6 tokens (in 5, cached 0, out 1), no price, 1 request, 1 of them estimated\n",
		"half: 6 tokens (in 5, cached 0, out 1), 0.000001 and what has no price, 2 requests\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%q", got)
	}
	b.Reset()
	if printUsage((sheet{w: &b, width: 100}), nil); b.Len() > 0 {
		t.Errorf("of nothing it says %q", b.String())
	}
}

func TestStatsHoldsWhatModelsUsedAgainstTheBudgets(t *testing.T) {
	d := newDaemon(t)
	d.stats = measured()
	d.stats.Spending = api.Spending{
		Hour: api.Spent{Tokens: 1_200, Cost: 10_000}, Day: api.Spent{Tokens: 12_345, Cost: 120_000}, Change: &api.Spent{Tokens: 7, Cost: 1},
		Budgets: []api.Share{{Budget: "tokens_per_hour", Used: 1_200, Limit: 5_000, Percent: 24}, {Budget: "cost_per_day", Used: 120_000, Limit: 100_000, Percent: 120}},
	}
	got := d.cli("stats", "chg-00000001").out
	for _, want := range []string{
		"\nmodels: 1,200 tokens, 0.01 in the last hour; 12,345 tokens, 0.12 in the last day\n", "\n        7 tokens, 0.000001 by this change\n",
		"\nbudget tokens_per_hour: 1,200 of 5,000 (24%)\n", "\nbudget cost_per_day: 0.12 of 0.10 (120%)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTheCardSaysWhatModelsUsed(t *testing.T) {
	var b strings.Builder
	printCard(sheet{w: &b, width: 100}, "chg-00000001", api.Proposal{Card: api.Card{Used: "used 12,345 tokens, 0.12" + hostile}})
	if got := b.String(); !strings.Contains(got, "\n  used 12,345 tokens, 0.12") || strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("%q", got)
	}
}
