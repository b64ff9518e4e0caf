package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/budget"
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

// spending is the account of one session's model.
type spending struct {
	b       *Budget
	subject id.Subject
	session id.Session
	tried   bool // of nothing: it has no row
	agent   string
	model   *agent.Endpoint
	group   string
	limits  func() (budget.Limits, error) // of the group; nil = none

	mu     sync.Mutex
	models map[string]bool
}

// Charge hangs the budgets into a way out.
func (b *Budget) Charge(o *Outgoing, tried bool) {
	if o.Model == nil || o.Check {
		return
	}
	s := &spending{b: b, subject: o.Subject, session: o.Session, tried: tried, agent: o.Agent, model: o.Model, group: o.Group,
		limits: o.Budget, models: map[string]bool{}}
	o.Admit, o.Used, o.Lost = s.admit, s.used, s.refuse
}

// admit says whether a request may go out. One that would go out while others are on its way, with little left, waits for them: many
// at once do not run far past a budget, and none is refused for what another may not use.
func (s *spending) admit(ctx context.Context) (over func(), err error) {
	for {
		over, landed, err := s.try(ctx)
		if err != nil && ctx.Err() == nil {
			s.b.Meter.Unpaid()
			s.refuse(err)
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
	b := s.b
	var own budget.Limits
	if s.limits != nil {
		if own, err = s.limits(); err != nil {
			return nil, nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.agency.Budgets()
	if _, ends := s.subject.Change(); !ends {
		l = l.Lasting()
	}
	price := b.Price(s.agent)
	if err := Countable(s.agent, s.model, price, l); err != nil {
		return nil, nil, err
	}
	if err := Countable(s.agent, s.model, price, own); err != nil {
		return nil, nil, err
	}
	if err := s.b.writeOwed(ctx); err != nil {
		return nil, nil, fmt.Errorf("what the model used could not be recorded, and no request goes out until it is: %w", err)
	}
	if err := b.AffordGroup(ctx, s.group, own); err != nil {
		return nil, nil, err
	}
	used, err := s.b.spent(ctx, s.subject)
	if err != nil {
		return nil, nil, err
	}
	if err := l.Check(used); err != nil {
		return nil, nil, err
	}
	var mine, all budget.Spent
	for f := range b.flights {
		if f.subject == s.subject {
			mine = mine.Plus(f.spent)
		}
		if f.subject == s.subject || time.Since(f.began) < flightPatience {
			all = all.Plus(f.spent)
		}
	}
	f := &flight{subject: s.subject, began: time.Now()}
	f.spent.Tokens = max(flightTokens, b.largest[s.subject])
	f.spent.Cost = price.Dearest(f.spent.Tokens)
	if !l.Fits(used.Plus(besides(mine, f.spent), besides(all, f.spent))) {
		return nil, b.landed, nil
	}
	b.flights[f] = true
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.flights, f)
		close(b.landed)
		b.landed = make(chan struct{})
	}), nil, nil
}

// refuse tells the supervisor why a request was refused.
func (s *spending) refuse(why error) {
	if s.tried {
		return
	}
	b := s.b
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.refusals[s.subject] <- why:
	default: // it knows, or is over
	}
}

// used writes what a request has used.
func (s *spending) used(u egress.Usage) {
	use := budget.Use{
		Subject: s.subject, Session: s.session, Model: s.named(u.Model), Minute: budget.At(u.At), Requests: 1,
		Tokens: budget.Tokens{Input: u.Input, Cached: u.Cached, Output: u.Output},
	}
	if s.tried {
		use.Subject, use.Session = "", ""
	}
	if u.Unknown {
		use.Estimated = 1
	}
	if price := s.b.Price(s.agent); price.Known() {
		use.Cost = price.Of(use.Tokens)
	} else {
		use.Unpriced = 1
	}
	b := s.b
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Lasting()), countPatience)
	defer cancel()
	b.mu.Lock()
	b.owed = append(b.owed, use)
	b.largest[s.subject] = max(b.largest[s.subject], use.Sum())
	err := b.writeOwed(ctx)
	b.mu.Unlock()
	if err != nil {
		b.Log.Error("what a model used was not recorded; until it is, no agent may ask its model", "for", s.subject, "error", err)
	}
	b.Meter.Used(use.Tokens, use.Cost, u.Unknown)
	if !s.tried {
		b.Report(ctx, s.subject)
	}
}

// named is a model's name as it is counted.
func (s *spending) named(model string) string {
	model = s.b.Secrets.Redact(model)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.models[model] && len(s.models) >= modelsMax {
		return ""
	}
	s.models[model] = true
	return model
}

// besides is what is on its way together with one more; what goes alone may go as long as anything is left.
func besides(others, one budget.Spent) budget.Spent {
	if others == (budget.Spent{}) {
		return budget.Spent{}
	}
	return others.Plus(one)
}
