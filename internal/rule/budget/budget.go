package budget

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// ErrUsedUp is wrapped by every refusal of a budget.
var ErrUsedUp = problem.New(problem.AgentFailed, "the budget is used up")

// ErrChangeUsedUp is wrapped by those of a change's own budget: no time brings it back. It wraps ErrUsedUp.
var ErrChangeUsedUp = fmt.Errorf("%w", ErrUsedUp)

// Money is an amount in millionths.
type Money int64

// Most that one row may hold: sums of millions of rows stay numbers.
const (
	tokensMax = 1e12
	moneyMax  = Money(1e15)
)

func (m Money) String() string {
	text := fmt.Sprintf("%d.%06d", m/1_000_000, m%1_000_000)
	for strings.HasSuffix(text, "0") && len(text)-strings.IndexByte(text, '.') > 3 { // money has two digits at least
		text = text[:len(text)-1]
	}
	return text
}

// Tokens are what a model read and wrote.
type Tokens struct {
	Input  int64 // without Cached
	Cached int64
	Output int64
}

// Sum counts them all.
func (t Tokens) Sum() int64 { return t.Input + t.Cached + t.Output }

// Price is what a million tokens cost.
type Price struct {
	Input  Money
	Cached Money // 0: as Input
	Output Money
}

// Known reports whether what a model uses can be told in money.
func (p Price) Known() bool { return p.Input > 0 && p.Output > 0 }

// Of is what tokens cost, rounded up; at most moneyMax.
func (p Price) Of(t Tokens) Money {
	if p.Cached == 0 {
		p.Cached = p.Input
	}
	var hi, lo uint64
	for _, part := range []struct {
		tokens int64
		price  Money
	}{{t.Input, p.Input}, {t.Cached, p.Cached}, {t.Output, p.Output}} {
		h, l := bits.Mul64(uint64(max(part.tokens, 0)), uint64(max(part.price, 0)))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	const perMillion = 1_000_000
	if hi >= perMillion {
		return moneyMax
	}
	whole, rest := bits.Div64(hi, lo, perMillion)
	if rest > 0 {
		whole++
	}
	if whole > uint64(moneyMax) {
		return moneyMax
	}
	return Money(whole)
}

// Dearest is what so many tokens cost at the most.
func (p Price) Dearest(tokens int64) Money {
	most := max(p.Input, p.Cached, p.Output)
	return Price{Input: most}.Of(Tokens{Input: tokens})
}

// Use is what requests of one session to one model used in one minute. One row holds them all: hours and days are sums of whole
// minutes, and a day of one agent is at most 1440 rows of a model, however much it asks.
type Use struct {
	Subject   id.Subject // "" = an agent was tried
	Session   id.Session // "" = an agent was tried
	Model     string     // as the endpoint says
	Minute    time.Time  // UTC, whole
	Requests  int64
	Estimated int64 // requests whose answer did not tell what they used
	Unpriced  int64 // requests whose price nobody has said
	Tokens
	Cost Money
}

// At is the minute of a time.
func At(t time.Time) time.Time { return t.UTC().Truncate(time.Minute) }

// Bounded is a use that a row can hold.
func (u Use) Bounded() Use {
	u.Input, u.Cached, u.Output = min(u.Input, tokensMax), min(u.Cached, tokensMax), min(u.Output, tokensMax)
	u.Cost = min(u.Cost, moneyMax)
	return u
}

// Add counts another use with this one.
func (u *Use) Add(more Use) {
	u.Requests += more.Requests
	u.Estimated += more.Estimated
	u.Unpriced += more.Unpriced
	u.Input += more.Input
	u.Cached += more.Cached
	u.Output += more.Output
	u.Cost += more.Cost
}

// Spent is what was used, of a change or in a window of time.
type Spent struct {
	Tokens int64
	Cost   Money
}

// Plus adds two.
func (s Spent) Plus(more Spent) Spent { return Spent{s.Tokens + more.Tokens, s.Cost + more.Cost} }

// The windows of time.
const (
	Hour = time.Hour
	Day  = 24 * time.Hour
)

// Since is the first minute that counts for a window that ends now. The minute in which the window begins counts whole: the sum is of
// what was used in the window, and of less than a minute before it.
func Since(now time.Time, window time.Duration) time.Time { return At(now.Add(-window)) }

// State is what counts against the budgets of one change.
type State struct {
	Change, Hour, Day Spent
}

// Plus counts what is on its way besides.
func (s State) Plus(change, all Spent) State {
	return State{s.Change.Plus(change), s.Hour.Plus(all), s.Day.Plus(all)}
}

// Name is a budget as the owner writes it below budgets:.
type Name string

const (
	TokensPerChange Name = "tokens_per_change"
	TokensPerHour   Name = "tokens_per_hour"
	TokensPerDay    Name = "tokens_per_day"
	CostPerChange   Name = "cost_per_change"
	CostPerHour     Name = "cost_per_hour"
	CostPerDay      Name = "cost_per_day"
)

// Names are all budgets.
var Names = []Name{TokensPerChange, TokensPerHour, TokensPerDay, CostPerChange, CostPerHour, CostPerDay}

// Money reports whether a budget is one of money.
func (n Name) Money() bool { return strings.HasPrefix(string(n), "cost") }

// OfChange reports whether a budget is one of a single change.
func (n Name) OfChange() bool { return strings.HasSuffix(string(n), "_change") }

// quantity is an amount of a budget in words.
func (n Name) quantity(v int64) string {
	if n.Money() {
		return Money(v).String()
	}
	return Thousands(v) + " tokens"
}

// was is an amount that was used, in words.
func (n Name) was(v int64) string {
	if n.Money() {
		return Money(v).String() + " was"
	}
	return Thousands(v) + " were"
}

// whose says what a budget is of.
func (n Name) whose() string {
	_, of, _ := strings.Cut(string(n), "_per_")
	switch of {
	case "change":
		return "for this change"
	case "hour":
		return "for all agents in an hour"
	}
	return "for all agents in a day"
}

// Limits are the home's budgets; 0 bounds nothing.
type Limits struct {
	TokensPerChange, TokensPerHour, TokensPerDay int64
	CostPerChange, CostPerHour, CostPerDay       Money
}

// Any reports whether anything is bounded.
func (l Limits) Any() bool { return l != Limits{} }

// Money reports whether money is bounded.
func (l Limits) Money() bool { return l.CostPerChange+l.CostPerHour+l.CostPerDay > 0 }

// Share is how much of one budget is used.
type Share struct {
	Name        Name
	Used, Limit int64 // tokens, or Money
}

// Percent is how much of the limit is used.
func (s Share) Percent() float64 { return 100 * float64(s.Used) / float64(s.Limit) }

// Shares are those of the budgets that there are, in the order of Names.
func (l Limits) Shares(s State) (out []Share) {
	for _, b := range []Share{
		{TokensPerChange, s.Change.Tokens, l.TokensPerChange},
		{TokensPerHour, s.Hour.Tokens, l.TokensPerHour},
		{TokensPerDay, s.Day.Tokens, l.TokensPerDay},
		{CostPerChange, int64(s.Change.Cost), int64(l.CostPerChange)},
		{CostPerHour, int64(s.Hour.Cost), int64(l.CostPerHour)},
		{CostPerDay, int64(s.Day.Cost), int64(l.CostPerDay)},
	} {
		if b.Limit > 0 {
			out = append(out, b)
		}
	}
	return out
}

// Check returns an error that wraps ErrUsedUp, or ErrChangeUsedUp, and names the first budget of which nothing is left.
func (l Limits) Check(s State) error {
	for _, b := range l.Shares(s) {
		if b.Used >= b.Limit {
			what := error(ErrUsedUp)
			if b.Name.OfChange() {
				what = ErrChangeUsedUp
			}
			return problem.Errorf(problem.AgentFailed, "", "%w: it is %s %s, and %s used (raise %s below budgets: in sallyport.yaml)",
				what, b.Name.quantity(b.Limit), b.Name.whose(), b.Name.was(b.Used), b.Name)
		}
	}
	return nil
}

// OfGroup returns an error that wraps ErrUsedUp if of what a group may use in an hour or a day nothing is left; file is where that is said.
func (l Limits) OfGroup(s State, file string) error {
	for _, b := range l.Shares(s) {
		if b.Used >= b.Limit {
			return problem.Errorf(problem.AgentFailed, "", "%w: the group has %s, and %s used (raise %s below budgets: in %s)",
				ErrUsedUp, b.Name.quantity(b.Limit), b.Name.was(b.Used), b.Name, file)
		}
	}
	return nil
}

// Lasting are the limits for what has no end: those of a change do not count.
func (l Limits) Lasting() Limits {
	l.TokensPerChange, l.CostPerChange = 0, 0
	return l
}

// Fits reports whether so much stays below every limit.
func (l Limits) Fits(s State) bool {
	for _, b := range l.Shares(s) {
		if b.Used > b.Limit {
			return false
		}
	}
	return true
}

// String leaves out a cost of nothing: what has no price is in no sum of money.
func (s Spent) String() string {
	text := Thousands(s.Tokens) + " tokens"
	if s.Cost > 0 {
		text += ", " + s.Cost.String()
	}
	return text
}

func (s Share) String() string {
	show := Thousands
	if s.Name.Money() {
		show = func(n int64) string { return Money(n).String() }
	}
	return fmt.Sprintf("%s: %s of %s (%.0f%%)", s.Name, show(s.Used), show(s.Limit), s.Percent())
}

func (u Use) String() string {
	text := fmt.Sprintf("%s tokens (in %s, cached %s, out %s)", Thousands(u.Sum()), Thousands(u.Input), Thousands(u.Cached), Thousands(u.Output))
	switch u.Unpriced {
	case 0:
		text += ", " + u.Cost.String()
	case u.Requests:
		text += ", no price"
	default:
		text += ", " + u.Cost.String() + " and what has no price"
	}
	text += ", " + Thousands(u.Requests) + " request"
	if u.Requests != 1 {
		text += "s"
	}
	if u.Estimated > 0 {
		text += ", " + Thousands(u.Estimated) + " of them estimated"
	}
	return text
}

// Words say in a line what models used: "used 12,345 tokens, 0.12"; "" if they were not asked.
func Words(uses []Use) string {
	var all Use
	for _, u := range uses {
		all.Add(u)
	}
	if all.Requests == 0 {
		return ""
	}
	text := "used " + Thousands(all.Sum()) + " tokens"
	switch {
	case all.Unpriced == 0:
		text += ", " + all.Cost.String()
	case all.Unpriced < all.Requests:
		text += ", " + all.Cost.String() + " and what has no price"
	}
	if all.Estimated > 0 {
		text += fmt.Sprintf(" (%d of %d requests are estimated)", all.Estimated, all.Requests)
	}
	return text
}

// Thousands writes a number with a comma between each three digits.
func Thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Tx is what counting asks of a transaction.
type Tx interface {
	// AddUse counts a use in the row of its session, model and minute, or in a new one.
	AddUse(ctx context.Context, u Use) error
	// Uses returns a subject's, by model, the first used first; Session and Minute are not set.
	Uses(ctx context.Context, subject id.Subject) ([]Use, error)
	// SpentOf sums what a subject used.
	SpentOf(ctx context.Context, subject id.Subject) (Spent, error)
	// SpentOfGroup sums what all chats of a group, and all changes of what it runs, used from a minute on.
	SpentOfGroup(ctx context.Context, group string, minute time.Time) (Spent, error)
	// SpentSince sums what all used from a minute on. What a clock that was set back has in the future counts.
	SpentSince(ctx context.Context, minute time.Time) (Spent, error)
}
