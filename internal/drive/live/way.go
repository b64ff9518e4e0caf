package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/port/login"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/secret"
)

// Network opens the ways out of sandboxes. What may be reached is the home's to say and the person's who asks, never the
// repository's.
type Network interface {
	// Open opens a way out that lasts until it is closed; the zero Way if nothing may be reached.
	//
	// Errors: what is asked for cannot be given, such as a model without its key; the way out is named.
	Open(ctx context.Context, o Outgoing) (Way, error)
}

// Way is an open way out.
type Way = session.Way

// Outgoing says what a way out is for.
type Outgoing struct {
	Subject id.Subject
	Session id.Session
	Agent   string                        // as it was asked for
	Model   *agent.Endpoint               // that may be reached, with its credential; nil = none
	Key     secret.Value                  // of Model; empty: it is asked without one
	Login   *login.Login                  // in place of Key; nil: none
	Group   string                        // of the subject
	Budget  func() (budget.Limits, error) // of that group, as they are now; nil = none
	Asked   []string                      // what the person lets this change reach: hosts, or registries
	Setup   bool                          // of a setup: package registries and nothing else, where the home or the person lets this change reach them
	Fetch   bool                          // of a setup that the person asked for, who lets it reach them by that
	Webless bool                          // Model and nothing else
	Unasked bool                          // of what no person waits for: no account is kept
	Check   bool                          // of a check: only where the home lets sandboxes reach anything, and never a model
	// Admit and Used are asked and told of each request to Model: see egress.Route. Nil: it is neither counted nor bounded.
	Admit func(ctx context.Context) (over func(), err error)
	Used  func(egress.Usage)
	// Waits is told for how long the endpoint of Model bids wait. May be nil.
	Waits func(time.Duration)
	// Moved is told now and then that a request to Model moves: see egress.Route. May be nil.
	Moved func()
	// Lost is told that Login has ended, before whoever asked hears it. Nil: nobody wants to know.
	Lost func(error)
	// Decided is told what became of each request; it does not block.
	Decided func(egress.Decision)
}

// Ways are the ways out of sandboxes, each bounded by the budgets and with an account of what is asked of it.
type Ways struct {
	Ledger  *ledger.Ledger
	Network Network
	Budget  *Budget
}

// Open opens the way out of one sandbox of a subject and keeps account of what is asked of it.
func (w Ways) Open(ctx context.Context, s Subject, o Outgoing) (Way, error) {
	o.Subject, o.Agent, o.Asked, o.Group, o.Budget = s.ID, s.Agent, s.Egress, s.Group, s.Budget
	o.Webless = s.Webless && !o.Setup && !o.Check
	if o.Unasked {
		return w.Network.Open(ctx, o)
	}
	account := keepAccount(ctx, w.Ledger, o.Subject)
	o.Decided = account.decided
	w.Budget.Charge(&o, false)
	watched(&o, s.Door)
	o.Waits, o.Moved = s.Waits, s.Moved
	way, err := w.Network.Open(ctx, o)
	if err != nil || way.Socket == "" {
		account.close()
		if err != nil {
			err = fmt.Errorf("open the way out of %s: %w", o.Session, err)
		}
		return Way{}, err
	}
	shut := way.End
	way.End = sync.OnceFunc(func() {
		if shut != nil {
			shut()
		}
		account.close()
	})
	return way, nil
}

// watched has door told of each request to a model.
func watched(o *Outgoing, door func() (over func())) {
	admit := o.Admit
	if admit == nil || door == nil {
		return
	}
	o.Admit = func(ctx context.Context) (func(), error) {
		passed, err := admit(ctx)
		if err != nil {
			return nil, err
		}
		over := door()
		return func() {
			over()
			if passed != nil {
				passed()
			}
		}, nil
	}
}

// Until is a way out whose end ends something else too.
func Until(way Way, release func()) Way {
	shut := way
	way.End = sync.OnceFunc(func() {
		shut.Close()
		release()
	})
	return way
}
