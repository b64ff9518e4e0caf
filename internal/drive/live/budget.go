package live

import (
	"context"
	"errors"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
)

// Budget counts what models use, and says before each request whether there is anything left. It knows what is on its way; what
// was used stands in rows, so that a budget outlives the daemon.
type Budget struct {
	*ledger.Ledger
	agency Agency

	mu       sync.Mutex
	flights  map[*flight]bool
	largest  map[id.Subject]int64 // tokens of one request
	landed   chan struct{}        // closed and made anew when a flight is over
	owed     []budget.Use         // could not be written; nothing is admitted before it is
	refusals map[id.Subject]chan error
}

// flight is a request that was admitted and is not over.
type flight struct {
	subject id.Subject
	began   time.Time
	spent   budget.Spent // taken for what it will use
}

// NewBudget returns what counts for a home whose agents agency knows.
func NewBudget(l *ledger.Ledger, agency Agency) *Budget {
	return &Budget{
		Ledger: l, agency: agency,
		flights: map[*flight]bool{}, largest: map[id.Subject]int64{}, landed: make(chan struct{}), refusals: map[id.Subject]chan error{},
	}
}

// Subscribe returns where a change's supervisor hears that a request was refused, before the agent hears it.
func (b *Budget) Subscribe(subject id.Subject) <-chan error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusals[subject] = make(chan error, 1)
	return b.refusals[subject]
}

// Unsubscribe ends that, and forgets what was not heard.
func (b *Budget) Unsubscribe(subject id.Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.refusals, subject)
}

// Forget forgets what requests of a change were like.
func (b *Budget) Forget(subject id.Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.largest, subject)
}

// errUncounted says that what a model uses would not be held against a budget that there is.
var errUncounted = problem.New(problem.Refused, "what the model uses cannot be counted")

// Unaffordable reports whether an agent may not ask its model before a person has changed the budgets, or time has.
func Unaffordable(err error) bool {
	return errors.Is(err, budget.ErrUsedUp) || errors.Is(err, errUncounted)
}

// Price is what the home says an agent's model costs.
func (b *Budget) Price(name string) budget.Price { return b.agency.Chosen(name).Price }

// Countable refuses an agent whose use cannot be held against the budgets that there are: what is not known is too much.
//
// Errors wrap errUncounted.
func Countable(name string, model *agent.Endpoint, price budget.Price, l budget.Limits) error {
	switch {
	case model == nil || !l.Any():
	case model.Wire == "":
		return problem.Case(errUncounted, "sallyport agent list",
			"there are budgets, and what the model of %[1]s uses cannot be counted: say which API its endpoint speaks, as agents: %[1]s: wire: in sallyport.yaml", name)
	case l.Money() && !price.Known():
		return problem.Case(errUncounted, "sallyport agent list",
			"there is a budget in money, and the price of the model of %[1]s is not known: add agents: %[1]s: price: {input: …, output: …} to sallyport.yaml, or set budgets in tokens alone", name)
	}
	return nil
}

// Afford refuses an agent that would be refused its first request. Errors wrap budget.ErrUsedUp where a budget is used up.
func (b *Budget) Afford(ctx context.Context, subject id.Subject, name string, model *agent.Endpoint) error {
	if model == nil {
		return nil
	}
	l := b.agency.Budgets()
	if err := Countable(name, model, b.Price(name), l); err != nil {
		return err
	}
	if _, ends := subject.Change(); !ends {
		l = l.Lasting()
	}
	s, err := b.spent(ctx, subject)
	if err != nil {
		return err
	}
	return l.Check(s)
}

// LimitsOf is what a group may use.
func LimitsOf(b config.RunnerBudgets) budget.Limits {
	return budget.Limits{
		TokensPerHour: int64(b.TokensPerHour), TokensPerDay: int64(b.TokensPerDay),
		CostPerHour: budget.Money(b.CostPerHour), CostPerDay: budget.Money(b.CostPerDay),
	}
}

// AffordGroup refuses what the budget of a group has no room for.
func (b *Budget) AffordGroup(ctx context.Context, group string, l budget.Limits) error {
	if !l.Any() {
		return nil
	}
	at := ledger.Now()
	var s budget.State
	err := b.DB.Read(ctx, func(tx store.Tx) (err error) {
		if s.Hour, err = tx.SpentOfGroup(ctx, group, budget.Since(at, budget.Hour)); err != nil {
			return err
		}
		s.Day, err = tx.SpentOfGroup(ctx, group, budget.Since(at, budget.Day))
		return err
	})
	if err != nil {
		return err
	}
	return l.OfGroup(s, "groups/"+group+"/runner/runner.yaml")
}

// spent is what counts against the budgets of a change by now.
func (b *Budget) spent(ctx context.Context, subject id.Subject) (s budget.State, err error) {
	err = b.DB.Read(ctx, func(tx store.Tx) error {
		s, err = sums(ctx, tx, subject, ledger.Now())
		return err
	})
	return s, err
}

func sums(ctx context.Context, tx budget.Tx, subject id.Subject, at time.Time) (s budget.State, err error) {
	if s.Change, err = tx.SpentOf(ctx, subject); err != nil {
		return s, err
	}
	if s.Hour, err = tx.SpentSince(ctx, budget.Since(at, budget.Hour)); err != nil {
		return s, err
	}
	s.Day, err = tx.SpentSince(ctx, budget.Since(at, budget.Day))
	return s, err
}

// Spending is what models used, against the budgets that there are.
type Spending struct {
	budget.State
	Shares []budget.Share
}

// Spending sums what models of all agents used in the last hour and day and, with a change, by it.
func (b *Budget) Spending(ctx context.Context, subject id.Subject) (Spending, error) {
	l := b.agency.Budgets()
	s, err := b.spent(ctx, subject)
	if err != nil {
		return Spending{}, err
	}
	if subject == "" {
		l.TokensPerChange, l.CostPerChange = 0, 0
	}
	return Spending{State: s, Shares: l.Shares(s)}, nil
}

// Report tells the figures how much of its budgets a change has used.
func (b *Budget) Report(ctx context.Context, subject id.Subject) {
	l := b.agency.Budgets()
	if !l.Any() {
		return
	}
	of, ok := subject.Change()
	if s, err := b.spent(ctx, subject); err == nil && ok {
		b.Meter.Spent(of, l.Shares(s))
	}
}

// writeOwed writes what is owed; called under the lock.
func (b *Budget) writeOwed(ctx context.Context) error {
	if len(b.owed) == 0 {
		return nil
	}
	err := b.DB.InTx(ctx, func(tx store.Tx) error {
		for _, u := range b.owed {
			if err := tx.AddUse(ctx, u); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		b.owed = nil
	}
	return err
}
