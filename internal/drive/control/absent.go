package control

import (
	"cmp"
	"context"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
	"sallyport/internal/rule/trust"
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
	p.Targets = cmp.Or[Targets](p.Targets, noTargets{})
	p.Tell = cmp.Or[ledger.Teller](p.Tell, noTeller{})
	p.Notebook = cmp.Or[Notebook](p.Notebook, noNotebook{})
	p.Agency = cmp.Or[Agency](p.Agency, noAgency{})
	p.Network = cmp.Or[Network](p.Network, noNetwork{})
	return p
}

type noTargets struct{}

func (noTargets) Of(context.Context, git.Dir, git.Project, git.OID) (trust.Target, string, error) {
	return trust.Target{}, "", nil
}

func (noTargets) Restart(_ context.Context, _ trust.Target, p git.Project, _ id.Change) error {
	return problem.Errorf(problem.Internal, "", "this daemon cannot restart what runs the code of %q", p.Top)
}

func (n noTargets) Probe(ctx context.Context, t trust.Target, p git.Project) error {
	if t.Probe.None() {
		return nil
	}
	return n.Ask(ctx, t, p)
}

func (noTargets) Ask(_ context.Context, _ trust.Target, p git.Project) error {
	return problem.Errorf(problem.Internal, "", "this daemon cannot probe what runs the code of %q", p.Top)
}

type noTeller struct{}

func (noTeller) Tell(context.Context, ledger.Note) error { return ledger.ErrNobody }

type noNotebook struct{}

func (noNotebook) Write(context.Context, id.Change, []checkpoint.Checkpoint) error { return nil }

func (noNotebook) Deterministic(context.Context, id.Change) (bool, error) { return false, nil }

type noAgency struct{}

func (noAgency) Chosen(string) (Choice, error) { return Choice{}, nil }

func (noAgency) Budgets() (budget.Limits, error) { return budget.Limits{}, nil }

type noNetwork struct{}

func (noNetwork) Open(context.Context, Outgoing) (Way, error) { return Way{}, nil }
