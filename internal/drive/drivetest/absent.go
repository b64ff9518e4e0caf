package drivetest

import (
	"context"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/confirm"
	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/group"
)

// absent is a home that has chosen nothing: nothing restarts, nobody is told, no note is kept, and nothing leads out of any sandbox.
type absent struct{ confirm.Targets }

func (absent) Of(context.Context, git.Dir, git.Project, git.OID) (trust.Target, string, error) {
	return trust.Target{}, "", nil
}

func (absent) Tell(context.Context, ledger.Note) error { return ledger.ErrNobody }

func (absent) Write(context.Context, id.Change, []checkpoint.Checkpoint) error { return nil }

func (absent) Deterministic(context.Context, id.Change) (bool, error) { return false, nil }

func (absent) Chosen(string) live.Choice { return live.Choice{} }

func (absent) Budgets() budget.Limits { return budget.Limits{} }

func (absent) Open(context.Context, live.Outgoing) (live.Way, error) { return live.Way{}, nil }

// noChats runs no agent of any group.
type noChats struct{}

func (noChats) Renew(context.Context, group.Folder, id.Chat) error {
	return problem.Errorf(problem.Internal, "", "this daemon runs no agent of a group")
}

func (n noChats) Begin(ctx context.Context, of group.Folder, chat id.Chat) error {
	return n.Renew(ctx, of, chat)
}

func (n noChats) Ask(ctx context.Context, of group.Folder, chat id.Chat) error {
	return n.Renew(ctx, of, chat)
}

// NoHost is a host that nobody keeps up.
type NoHost struct{ guard.Host }

func (NoHost) Judges() error {
	return problem.Errorf(problem.Refused, "sallyport serve", "nobody keeps this host up")
}

func (NoHost) Record() (keeper.Record, bool, error) { return keeper.Record{}, false, nil }
