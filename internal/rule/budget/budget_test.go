package budget_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/rule/budget"
)

func TestWhatTokensCostIsExactAndRoundedUpOnce(t *testing.T) {
	usual := budget.Price{Input: 1_250_000, Cached: 125_000, Output: 10_000_000}
	for name, test := range map[string]struct {
		price  budget.Price
		tokens budget.Tokens
		want   budget.Money
		say    string
	}{
		"nothing":                      {usual, budget.Tokens{}, 0, "0.00"},
		"one token":                    {usual, budget.Tokens{Input: 1}, 2, "0.000002"},
		"all three kinds":              {usual, budget.Tokens{Input: 700, Cached: 300, Output: 20}, 1113, "0.001113"}, // 875 + 37.5 + 200
		"rounded once, not per kind":   {budget.Price{Input: 1, Cached: 1, Output: 1}, budget.Tokens{Input: 1, Cached: 1, Output: 1}, 1, "0.000001"},
		"a million of each":            {usual, budget.Tokens{Input: 1e6, Cached: 1e6, Output: 1e6}, 11_375_000, "11.375"},
		"what was cached has no price": {budget.Price{Input: 2_000_000, Output: 1}, budget.Tokens{Cached: 1e6}, 2_000_000, "2.00"},
		"more than numbers hold":       {budget.Price{Input: 999_999_999_999_999, Output: 1}, budget.Tokens{Input: math.MaxInt64, Cached: math.MaxInt64}, 1e15, "1000000000.00"},
		"almost as much":               {budget.Price{Input: 999_999_999_999_999, Output: 1}, budget.Tokens{Input: 1e12}, 1e15, "1000000000.00"},
		"exactly as much as is held":   {budget.Price{Input: 1e15}, budget.Tokens{Input: 1e6}, 1e15, "1000000000.00"},
		"one more than is divided":     {budget.Price{Input: 4_000_000}, budget.Tokens{Input: 1 << 62}, 1e15, "1000000000.00"},
		"as much as does not divide":   {budget.Price{Input: math.MaxInt64, Output: math.MaxInt64}, budget.Tokens{Input: 2_000_000, Output: 1}, 1e15, "1000000000.00"},
		"less than nothing":            {usual, budget.Tokens{Input: -5}, 0, "0.00"},
	} {
		if got := test.price.Of(test.tokens); got != test.want || got.String() != test.say {
			t.Errorf("%s: %d (%s), want %d (%s)", name, got, got, test.want, test.say)
		}
	}
}

func TestAnIncompletePriceIsNone(t *testing.T) {
	for price, want := range map[budget.Price]bool{
		{}: false, {Input: 1}: false, {Output: 1}: false, {Cached: 1}: false, {Input: 1, Output: 1}: true,
	} {
		if price.Known() != want {
			t.Errorf("%+v: %t", price, !want)
		}
	}
}

func TestABudgetIsUsedUpWhenNothingIsLeftAndSaysWhich(t *testing.T) {
	state := budget.State{Change: budget.Spent{Tokens: 1000, Cost: 100}, Hour: budget.Spent{Tokens: 20_000, Cost: 2_500_000}, Day: budget.Spent{Tokens: 3_000_000, Cost: 30_000_000}}
	for name, test := range map[string]struct {
		limits budget.Limits
		want   string // "" = there is something left
	}{
		"no budgets":       {budget.Limits{}, ""},
		"all larger":       {budget.Limits{1001, 20_001, 3_000_001, 101, 2_500_001, 30_000_001}, ""},
		"change, tokens":   {budget.Limits{TokensPerChange: 1000}, "the budget is used up: it is 1,000 tokens for this change, and 1,000 were used (raise tokens_per_change below budgets: in sallyport.yaml)"},
		"hour, tokens":     {budget.Limits{TokensPerHour: 19_999}, "the budget is used up: it is 19,999 tokens for all agents in an hour, and 20,000 were used (raise tokens_per_hour below budgets: in sallyport.yaml)"},
		"day, tokens":      {budget.Limits{TokensPerDay: 3_000_000}, "the budget is used up: it is 3,000,000 tokens for all agents in a day, and 3,000,000 were used (raise tokens_per_day below budgets: in sallyport.yaml)"},
		"change, cost":     {budget.Limits{CostPerChange: 100}, "the budget is used up: it is 0.0001 for this change, and 0.0001 was used (raise cost_per_change below budgets: in sallyport.yaml)"},
		"hour, cost":       {budget.Limits{CostPerHour: 2_000_000}, "the budget is used up: it is 2.00 for all agents in an hour, and 2.50 was used (raise cost_per_hour below budgets: in sallyport.yaml)"},
		"day, cost":        {budget.Limits{CostPerDay: 1}, "the budget is used up: it is 0.000001 for all agents in a day, and 30.00 was used (raise cost_per_day below budgets: in sallyport.yaml)"},
		"the first of two": {budget.Limits{TokensPerDay: 1, CostPerChange: 1}, "the budget is used up: it is 1 tokens for all agents in a day, and 3,000,000 were used (raise tokens_per_day below budgets: in sallyport.yaml)"},
	} {
		err := test.limits.Check(state)
		if test.want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != test.want || !errors.Is(err, budget.ErrUsedUp) || errors.Is(err, budget.ErrChangeUsedUp) != strings.Contains(test.want, "for this change") || problem.KindOf(err) != problem.AgentFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsOnItsWayFitsOrNot(t *testing.T) {
	l := budget.Limits{TokensPerChange: 1000, CostPerHour: 50}
	s := budget.State{Change: budget.Spent{Tokens: 600}, Hour: budget.Spent{Cost: 20}}
	for way, want := range map[budget.Spent]bool{{}: true, {Tokens: 400, Cost: 30}: true, {Tokens: 401}: false, {Cost: 31}: false} {
		if l.Fits(s.Plus(way, way)) != want {
			t.Errorf("%+v fits: %t", way, !want)
		}
	}
	if !l.Fits(s.Plus(budget.Spent{}, budget.Spent{Tokens: 1 << 40})) { // another change's tokens are not of this one
		t.Error("what others use counts against a change")
	}
}

func TestAWindowIsOfWholeMinutesAndForgetsNothingTooEarly(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 30, 45, 0, time.FixedZone("", 3600))
	if got := budget.Since(now, budget.Hour); !got.Equal(time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)) {
		t.Errorf("the hour begins at %s", got)
	}
	if got := budget.Since(now, budget.Day); !got.Equal(time.Date(2026, 2, 28, 11, 30, 0, 0, time.UTC)) {
		t.Errorf("the day begins at %s", got)
	}
	for minutes := range 1500 { // what was used at most an hour ago counts, and nothing that is older than an hour and a minute
		used := now.Add(-time.Duration(minutes) * time.Minute)
		counts := !budget.At(used).Before(budget.Since(now, budget.Hour))
		if counts != (minutes <= 60) {
			t.Errorf("%d minutes ago: counts %t", minutes, counts)
		}
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567", -1234: "-1,234", -123: "-123"} {
		if got := budget.Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for m, want := range map[budget.Money]string{0: "0.00", 120_000: "0.12", 123_456: "0.123456", 100: "0.0001", 1_000_000: "1.00", 2_500_000: "2.50"} {
		if m.String() != want {
			t.Errorf("%d: %s", int64(m), m)
		}
	}
}

func TestALineSaysWhatWasUsed(t *testing.T) {
	use := func(requests, estimated, unpriced int64) budget.Use {
		return budget.Use{Requests: requests, Estimated: estimated, Unpriced: unpriced, Tokens: budget.Tokens{Input: 12_000, Cached: 300, Output: 45}, Cost: 120_000}
	}
	for want, uses := range map[string][]budget.Use{
		"":                         nil,
		"used 12,345 tokens, 0.12": {use(3, 0, 0)},
		"used 24,690 tokens, 0.24 and what has no price":           {use(3, 0, 0), use(1, 0, 1)},
		"used 12,345 tokens":                                       {use(2, 0, 2)},
		"used 12,345 tokens, 0.12 (1 of 3 requests are estimated)": {use(3, 1, 0)},
	} {
		if got := budget.Words(uses); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBudgetsAndUsesReadAsALine(t *testing.T) {
	use := budget.Use{Requests: 3, Tokens: budget.Tokens{Input: 12_000, Cached: 300, Output: 45}, Cost: 120_000}
	one, part, none := use, use, use
	one.Requests, one.Estimated = 1, 1
	part.Unpriced, none.Unpriced = 1, 3
	for want, of := range map[string]fmt.Stringer{
		"12,345 tokens (in 12,000, cached 300, out 45), 0.12, 3 requests":                       use,
		"12,345 tokens (in 12,000, cached 300, out 45), 0.12, 1 request, 1 of them estimated":   one,
		"12,345 tokens (in 12,000, cached 300, out 45), 0.12 and what has no price, 3 requests": part,
		"12,345 tokens (in 12,000, cached 300, out 45), no price, 3 requests":                   none,
		"1,000 tokens":                          budget.Spent{Tokens: 1000},
		"1,000 tokens, 0.000001":                budget.Spent{Tokens: 1000, Cost: 1},
		"tokens_per_hour: 1,000 of 4,000 (25%)": budget.Share{Name: budget.TokensPerHour, Used: 1000, Limit: 4000},
		"cost_per_change: 0.50 of 1.00 (50%)":   budget.Share{Name: budget.CostPerChange, Used: 500_000, Limit: 1_000_000},
	} {
		if of.String() != want {
			t.Errorf("%q, want %q", of, want)
		}
	}
}

// A row's sums stay numbers, whatever an endpoint says of itself.
func TestAUseIsBoundedInEachOfItsNumbers(t *testing.T) {
	const much = math.MaxInt64
	got := budget.Use{Requests: 2, Tokens: budget.Tokens{Input: much, Cached: much, Output: much}, Cost: much}.Bounded()
	if want := (budget.Use{Requests: 2, Tokens: budget.Tokens{Input: 1e12, Cached: 1e12, Output: 1e12}, Cost: 1e15}); got != want {
		t.Errorf("%+v", got)
	}
	if small := (budget.Use{Tokens: budget.Tokens{Input: 1, Cached: 2, Output: 3}, Cost: 4}); small.Bounded() != small {
		t.Errorf("%+v", small.Bounded())
	}
}

func TestOneLimitIsEnoughToBeBounded(t *testing.T) {
	for limits, want := range map[budget.Limits]struct{ any, money bool }{
		{}: {}, {TokensPerChange: 1}: {true, false}, {TokensPerDay: 1}: {true, false},
		{CostPerChange: 1}: {true, true}, {CostPerHour: 1}: {true, true}, {CostPerDay: 1}: {true, true},
	} {
		if limits.Any() != want.any || limits.Money() != want.money {
			t.Errorf("%+v: any %t, money %t", limits, limits.Any(), limits.Money())
		}
	}
}
