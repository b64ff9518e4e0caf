package control

import (
	"cmp"
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	programs "sallyport/internal/base/release"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// fill returns p with a working part that does nothing for each that is absent, so that nobody asks whether there is one.
func (p Parts) fill() Parts {
	if p.Settings.WorkersMax <= 0 {
		p.Settings.WorkersMax = WorkersDefault
	}
	if p.Secrets == nil {
		p.Secrets = secret.Default()
	}
	if p.Keys == nil {
		p.Keys = credential.NewRing(nil, func(string) string { return "" })
	}
	if p.Clock == nil {
		p.Clock = deadman.Now
	}
	if p.Listen == nil {
		p.Listen = func(context.Context, session.Watched) (*session.Watch, error) { return nil, nil }
	}
	if p.Terminal == nil {
		p.Terminal = func() bool { return false }
	}
	p.Targets = cmp.Or[confirm.Targets](p.Targets, confirm.NoTargets{})
	p.Chats = cmp.Or[confirm.Chats](p.Chats, confirm.NoChats{})
	p.Host = cmp.Or[guard.Host](p.Host, guard.NoHost{})
	p.Teller = cmp.Or[ledger.Teller](p.Teller, noTeller{})
	if p.Take == nil {
		p.Take = takeNone
	}
	p.Notebook = cmp.Or[supervise.Notebook](p.Notebook, noNotebook{})
	p.Agency = cmp.Or[live.Agency](p.Agency, noAgency{})
	p.Network = cmp.Or[live.Network](p.Network, noNetwork{})
	return p
}

type noTeller struct{}

func (noTeller) Tell(context.Context, ledger.Note) error { return ledger.ErrNobody }

type noNotebook struct{}

func (noNotebook) Write(context.Context, id.Change, []checkpoint.Checkpoint) error { return nil }

func (noNotebook) Deterministic(context.Context, id.Change) (bool, error) { return false, nil }

type noAgency struct{}

func (noAgency) Chosen(string) (live.Choice, error) { return live.Choice{}, nil }

func (noAgency) Budgets() (budget.Limits, error) { return budget.Limits{}, nil }

type noNetwork struct{}

func (noNetwork) Open(context.Context, live.Outgoing) (live.Way, error) { return live.Way{}, nil }

// noRehearsals is for a home whose daemon is no program that could be tried.
type noRehearsals struct{}

func (noRehearsals) Rehearse(context.Context, change.Row, grounds.Offer, string) (*proposal.Host, *proposal.CheckResult, error) {
	return nil, nil, nil
}

// takeNone is for a host that nothing keeps up.
func takeNone(context.Context, string, audit.Actor) (programs.Release, bool, error) {
	return programs.Release{}, false, problem.Errorf(problem.Refused, "sallyport serve", "this host cannot be upgraded while it runs: nothing keeps it up")
}
