package metric

import (
	"sallyport/internal/base/id"
	"sallyport/internal/rule/budget"
)

// budgets is how many there are.
const budgets = 6

// Shares are the percent that are used of each budget, in the order of budget.Names; 0 where there is none.
type Shares [budgets]float64

func sharesOf(all []budget.Share) (out Shares) {
	for i, name := range budget.Names {
		for _, s := range all {
			if s.Name == name {
				out[i] = s.Percent()
			}
		}
	}
	return out
}

// split parts what is of one change from what is of all.
func (s Shares) split() (own, all Shares) {
	for i, name := range budget.Names {
		if name.OfChange() {
			own[i] = s[i]
		} else {
			all[i] = s[i]
		}
	}
	return own, all
}

const (
	usedMax  = 80.0 // percent of a budget
	usedCalm = 70.0
)

// usedUp raises when so much of a budget is used; it is calm when it is raised, or its window has moved on.
func usedUp(i int, name budget.Name) rule {
	return rule{
		Name: "budget_" + string(name), Unit: "percent", Limit: usedMax,
		say: "%s of the budget " + string(name) + " are used; the alert is at %s",
		judge: func(v view, raised bool) finding {
			figure, change := v.spent[i], id.Change("")
			if name.OfChange() {
				figure, change = v.shares[i], v.totals.sharesOf[i]
			}
			return finding{fires: figure >= usedMax || raised && figure >= usedCalm, figure: figure, change: change}
		},
	}
}

// Used counts what one request to a model used; cost is in millionths.
func (s *Set) Used(t budget.Tokens, cost budget.Money, estimated bool) {
	told := "told"
	if estimated {
		told = "estimated"
	}
	s.record(func() {
		s.count("model requests", s.requests.WithLabelValues(told))
		for kind, n := range map[string]int64{"input": t.Input, "cached": t.Cached, "output": t.Output} {
			s.tokens.WithLabelValues(kind).Add(float64(max(n, 0)))
		}
		s.cost.Add(float64(max(cost, 0)) / 1e6)
	})
}

// Unpaid counts a request to a model that a budget refused.
func (s *Set) Unpaid() {
	s.record(func() { s.count("model requests refused", s.requests.WithLabelValues("refused")) })
}

// Spent says how much of the budgets is used, as far as a change knows them: its own and those of all.
func (s *Set) Spent(change id.Change, all []budget.Share) {
	s.record(func() {
		own, common := sharesOf(all).split()
		s.figures.at(change).Shares = own
		s.figures.stale = true
		s.spent = common
	})
}
