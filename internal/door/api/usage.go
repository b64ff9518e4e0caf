package api

import "sallyport/internal/rule/budget"

// Money is an amount in millionths of whatever the home's owner counts in.
type Money = budget.Money

// Usage is what one model used for a change.
type Usage struct {
	Model     string `json:"model"` // as its endpoint says
	Requests  int64  `json:"requests"`
	Estimated int64  `json:"requests_estimated"` // whose answer did not tell what they used
	Unpriced  int64  `json:"requests_unpriced"`  // for which the home has no price
	Input     int64  `json:"input_tokens"`       // without cached ones
	Cached    int64  `json:"cached_tokens"`
	Output    int64  `json:"output_tokens"`
	Cost      Money  `json:"cost_millionths"`
}

// Spent is what was used in all.
type Spent struct {
	Tokens int64 `json:"tokens"`
	Cost   Money `json:"cost_millionths"`
}

// Share is how much of one budget is used; of money Used and Limit are millionths.
type Share struct {
	Budget  string  `json:"budget"` // as below budgets: in sallyport.yaml
	Used    int64   `json:"used"`
	Limit   int64   `json:"limit"`
	Percent float64 `json:"percent"`
}

// Spending is what models used, and how much is left.
type Spending struct {
	Hour    Spent   `json:"hour"` // the last 60 minutes
	Day     Spent   `json:"day"`  // the last 24 hours
	Change  *Spent  `json:"change,omitempty"`
	Budgets []Share `json:"budgets"`
}

// Line says it in words: "12,345 tokens, 0.12".
func (s Spent) Line() string { return budget.Spent{Tokens: s.Tokens, Cost: s.Cost}.String() }

// Line says it in words: "tokens_per_hour: 1,200 of 5,000 (24%)".
func (s Share) Line() string {
	return budget.Share{Name: budget.Name(s.Budget), Used: s.Used, Limit: s.Limit}.String()
}

// Line says it in words: "12,345 tokens (in 10,000, cached 2,000, out 345), 0.12, 7 requests".
func (u Usage) Line() string {
	return budget.Use{Requests: u.Requests, Estimated: u.Estimated, Unpriced: u.Unpriced,
		Tokens: budget.Tokens{Input: u.Input, Cached: u.Cached, Output: u.Output}, Cost: u.Cost}.String()
}
