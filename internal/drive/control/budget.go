package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/budget"
	"sallyport/internal/store"
)

const (

	// flightTokens is what a request counts as until it is known what it used, unless its change has had a larger one.
	flightTokens = 32_000
	// modelsMax is how many models of one session are told apart; the rest is counted together, without a name.
	modelsMax = 20
	// flightPatience is how long a request of one change counts against the others before it is known what it used: a program that holds
	// its request open must not keep all others from asking.
	flightPatience = 2 * time.Minute
	// countPatience is how long the writing of one use may take.
	countPatience = 10 * time.Second
)

// purse counts what models use, and says before each request whether there is anything left. It knows what is on its way; what
// was used stands in rows, so that a budget outlives the daemon.
type purse struct {
	mu      sync.Mutex
	flights map[*flight]bool
	largest map[id.Change]int64 // tokens of one request
	landed  chan struct{}       // closed and made anew when a flight is over
	owed    []budget.Use        // could not be written; nothing is admitted before it is
	bells   map[id.Change]chan error
}

// flight is a request that was admitted and is not over.
type flight struct {
	change id.Change
	began  time.Time
	spent  budget.Spent // taken for what it will use
}

func newPurse() purse {
	return purse{flights: map[*flight]bool{}, largest: map[id.Change]int64{}, landed: make(chan struct{}), bells: map[id.Change]chan error{}}
}

// hang hangs the bell by which a change's supervisor hears that a request was refused, before the agent hears it.
func (p *purse) hang(change id.Change) <-chan error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bells[change] = make(chan error, 1)
	return p.bells[change]
}

// unhang forgets a change's bell and what it was told by it.
func (p *purse) unhang(change id.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.bells, change)
}

// forget forgets what requests of a change were like.
func (p *purse) forget(change id.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.largest, change)
}

// errUncounted says that what a model uses would not be held against a budget that there is.
var errUncounted = problem.New(problem.Refused, "what the model uses cannot be counted")

// unaffordable reports whether an agent may not ask its model before a person has changed the budgets, or time has.
func unaffordable(err error) bool {
	return errors.Is(err, budget.ErrUsedUp) || errors.Is(err, errUncounted)
}

// price is what the home says an agent's model costs.
func (c *Controller) price(name string) (budget.Price, error) {
	choice, err := c.Agency.Chosen(name)
	return choice.Price, err
}

// countable refuses an agent whose use cannot be held against the budgets that there are: what is not known is too much.
//
// Errors wrap errUncounted.
func countable(name string, model *agent.Endpoint, price budget.Price, l budget.Limits) error {
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

// affords refuses an agent that would be refused its first request. Errors wrap budget.ErrUsedUp where a budget is used up.
func (c *Controller) affords(ctx context.Context, change id.Change, name string, model *agent.Endpoint) error {
	if model == nil {
		return nil
	}
	l, err := c.Agency.Budgets()
	if err != nil {
		return err
	}
	price, err := c.price(name)
	if err != nil {
		return err
	}
	if err := countable(name, model, price, l); err != nil {
		return err
	}
	s, err := c.spent(ctx, change)
	if err != nil {
		return err
	}
	return l.Check(s)
}

// spent is what counts against the budgets of a change by now.
func (c *Controller) spent(ctx context.Context, change id.Change) (s budget.State, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		s, err = sums(ctx, tx, change, ledger.Now())
		return err
	})
	return s, err
}

func sums(ctx context.Context, tx budget.Tx, change id.Change, at time.Time) (s budget.State, err error) {
	if s.Change, err = tx.SpentOf(ctx, change); err != nil {
		return s, err
	}
	if s.Hour, err = tx.SpentSince(ctx, budget.Since(at, budget.Hour)); err != nil {
		return s, err
	}
	s.Day, err = tx.SpentSince(ctx, budget.Since(at, budget.Day))
	return s, err
}

// spending is the account of one session's model.
type spending struct {
	c       *Controller
	change  id.Change
	session id.Session
	tried   bool // of nothing: it has no row
	agent   string
	model   *agent.Endpoint

	mu     sync.Mutex
	models map[string]bool
}

// spends hangs the budgets into a way out.
func (c *Controller) spends(o *Outgoing, tried bool) {
	if o.Model == nil || o.Check {
		return
	}
	s := &spending{c: c, change: o.Change, session: o.Session, tried: tried, agent: o.Agent, model: o.Model, models: map[string]bool{}}
	o.Admit, o.Used = s.admit, s.used
}

// admit says whether a request may go out. One that would go out while others are on its way, with little left, waits for them: many
// at once do not run far past a budget, and none is refused for what another may not use.
func (s *spending) admit(ctx context.Context) (over func(), err error) {
	for {
		over, landed, err := s.try(ctx)
		if err != nil && ctx.Err() == nil {
			s.c.Meter.Unpaid()
			s.ring(err)
		}
		if over != nil || err != nil {
			return over, err
		}
		later := time.NewTimer(flightPatience)
		select {
		case <-landed:
		case <-later.C:
		case <-ctx.Done():
			later.Stop()
			return nil, fmt.Errorf("the request waited for others: %w", context.Cause(ctx))
		}
		later.Stop()
	}
}

// try admits a request, refuses it, or returns what to wait for.
func (s *spending) try(ctx context.Context) (over func(), landed <-chan struct{}, err error) {
	p := &s.c.purse
	p.mu.Lock()
	defer p.mu.Unlock()
	l, err := s.c.Agency.Budgets()
	if err != nil {
		return nil, nil, err
	}
	price, err := s.c.price(s.agent)
	if err != nil {
		return nil, nil, err
	}
	if err := countable(s.agent, s.model, price, l); err != nil {
		return nil, nil, err
	}
	if err := s.c.writeOwed(ctx); err != nil {
		return nil, nil, fmt.Errorf("what the model used could not be recorded, and no request goes out until it is: %w", err)
	}
	used, err := s.c.spent(ctx, s.change)
	if err != nil {
		return nil, nil, err
	}
	if err := l.Check(used); err != nil {
		return nil, nil, err
	}
	var own, all budget.Spent
	for f := range p.flights {
		if f.change == s.change {
			own = own.Plus(f.spent)
		}
		if f.change == s.change || time.Since(f.began) < flightPatience {
			all = all.Plus(f.spent)
		}
	}
	f := &flight{change: s.change, began: time.Now()}
	f.spent.Tokens = max(flightTokens, p.largest[s.change])
	f.spent.Cost = price.Dearest(f.spent.Tokens)
	if !l.Fits(used.Plus(besides(own, f.spent), besides(all, f.spent))) {
		return nil, p.landed, nil
	}
	p.flights[f] = true
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.flights, f)
		close(p.landed)
		p.landed = make(chan struct{})
	}), nil, nil
}

// besides is what is on its way together with one more; what goes alone may go as long as anything is left.
func besides(others, one budget.Spent) budget.Spent {
	if others == (budget.Spent{}) {
		return budget.Spent{}
	}
	return others.Plus(one)
}

// ring tells the supervisor why a request was refused.
func (s *spending) ring(why error) {
	if s.tried {
		return
	}
	p := &s.c.purse
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.bells[s.change] <- why:
	default: // it knows, or is over
	}
}

// used writes what a request has used.
func (s *spending) used(u egress.Usage) {
	use := budget.Use{
		Change: s.change, Session: s.session, Model: s.named(u.Model), Minute: budget.At(u.At), Requests: 1,
		Tokens: budget.Tokens{Input: u.Input, Cached: u.Cached, Output: u.Output},
	}
	if s.tried {
		use.Change, use.Session = "", ""
	}
	if u.Unknown {
		use.Estimated = 1
	}
	price, err := s.c.price(s.agent)
	if err == nil && price.Known() {
		use.Cost = price.Of(use.Tokens)
	} else {
		use.Unpriced = 1
	}
	c, p := s.c, &s.c.purse
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Lasting()), countPatience)
	defer cancel()
	p.mu.Lock()
	p.owed = append(p.owed, use)
	p.largest[s.change] = max(p.largest[s.change], use.Sum())
	err = c.writeOwed(ctx)
	p.mu.Unlock()
	if err != nil {
		c.Log.Error("what a model used was not recorded; until it is, no agent may ask its model", "change", s.change, "error", err)
	}
	c.Meter.Used(use.Tokens, use.Cost, u.Unknown)
	if !s.tried {
		c.shares(ctx, s.change)
	}
}

// named is a model's name as it is counted.
func (s *spending) named(model string) string {
	model = s.c.Secrets.Redact(model)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.models[model] && len(s.models) >= modelsMax {
		return ""
	}
	s.models[model] = true
	return model
}

// writeOwed writes what is owed; called under the purse's lock.
func (c *Controller) writeOwed(ctx context.Context) error {
	p := &c.purse
	if len(p.owed) == 0 {
		return nil
	}
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		for _, u := range p.owed {
			if err := tx.AddUse(ctx, u); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.owed = nil
	}
	return err
}

// shares tells the figures how much of its budgets a change has used.
func (c *Controller) shares(ctx context.Context, change id.Change) {
	l, err := c.Agency.Budgets()
	if err != nil || !l.Any() {
		return
	}
	if s, err := c.spent(ctx, change); err == nil {
		c.Meter.Spent(change, l.Shares(s))
	}
}

// Spending is what models used, against the budgets that there are.
type Spending struct {
	budget.State
	Shares []budget.Share
}

// Spending sums what models of all agents used in the last hour and day and, with a change, by it.
func (c *Controller) Spending(ctx context.Context, change id.Change) (Spending, error) {
	l, err := c.Agency.Budgets()
	if err != nil {
		return Spending{}, err
	}
	s, err := c.spent(ctx, change)
	if err != nil {
		return Spending{}, err
	}
	if change == "" {
		l.TokensPerChange, l.CostPerChange = 0, 0
	}
	return Spending{State: s, Shares: l.Shares(s)}, nil
}

// waitForBudget blocks a change whose agent could ask its model nothing: it goes on when somebody raises the budget and resumes it.
func (c *Controller) waitForBudget(ctx context.Context, row change.Row, because error) error {
	_, err := c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return c.Move(ctx, tx, row, ledger.Move{Event: change.Block, By: audit.Host, Blocked: change.BudgetUsedUp, Because: overspent(row.ID, because)})
	})
	if err != nil {
		return fmt.Errorf("wait for a budget: %w", err)
	}
	return nil
}

// overspent says to a person why an agent of a change is stopped, and how it goes on.
func overspent(change id.Change, why error) error {
	resume := "sallyport change resume " + string(change)
	if errors.Is(why, budget.ErrChangeUsedUp) {
		return problem.Errorf(problem.AgentFailed, resume, "%w; raise that budget, then: %s", why, resume)
	}
	if errors.Is(why, budget.ErrUsedUp) {
		return problem.Errorf(problem.AgentFailed, resume, "%w; raise that budget, or wait until the hour or day is over, then: %s", why, resume)
	}
	return problem.Errorf(problem.AgentFailed, resume, "the agent may not ask its model: %w; then: %s", why, resume)
}

// waitsForBudget refuses to resume a change whose budget is still used up.
func (c *Controller) waitsForBudget(ctx context.Context, row change.Row) error {
	if row.Blocked != change.BudgetUsedUp {
		return nil
	}
	e, err := c.equip(row.ID, row.Request)
	if err != nil {
		return err
	}
	p, err := e.program()
	if err != nil {
		return err
	}
	c.shares(ctx, row.ID) // the budgets may be others now
	if err := c.affords(ctx, row.ID, row.Request.Agent, p.Model); err != nil {
		return problem.Errorf(problem.Refused, "sallyport stats", "%s cannot be resumed: %w", row.ID, err)
	}
	return nil
}

// overspent stops an agent that may ask its model no more and asks a person.
func (s *supervisor) overspent(ctx context.Context, why error) {
	s.rounds.unpaid = true
	if s.idle() {
		return
	}
	err := s.stop(ctx)
	if err == nil {
		err = s.shift(ctx, ledger.Move{Event: change.Block, By: audit.Host, Subject: string(s.run.Session.ID), Blocked: change.BudgetUsedUp, Because: overspent(s.row.ID, why)})
		if err != nil {
			s.still = false
			err = errors.Join(err, s.process.Thaw())
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errOver) {
		s.c.Log.Error("an agent whose budget is used up could not be paused, so it was ended", "change", s.row.ID, "error", err)
		s.process.Kill()
	}
}

// goOn tells an agent whose turn failed because its budget was used up that there is more. It is no round: nothing was wrong.
func (s *supervisor) goOn(ctx context.Context) {
	const words = "Your model refused to answer because a budget was used up. It answers again. Go on where you stopped."
	s.rounds.failure = ""
	s.telling.Go(func() {
		d := s.run.Talk.Tell(ctx, words)
		s.c.told(context.WithoutCancel(ctx), s.row.ID, string(s.run.Session.ID), request.FirstLine(words), audit.Host, d)
		s.heard(d)
	})
}
