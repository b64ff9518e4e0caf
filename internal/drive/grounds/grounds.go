package grounds

import (
	"context"
	"fmt"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
)

// Reader reads what changes are judged by.
type Reader struct {
	Rules      Rulebook
	Workspaces *workspace.Manager
	Ops        disk.Ops
}

// AtBase returns the host's repository of a row's project and what judges the row, as it stands at its base.
func (g Reader) AtBase(ctx context.Context, row change.Row) (git.Dir, Judging, error) {
	host, err := g.Workspaces.EnsureRepository(ctx, row.Request.Project, git.OID(row.Base))
	if err != nil {
		return git.Dir{}, Judging{}, err
	}
	judging, err := g.At(ctx, row.Request.Project, host, git.OID(row.Base))
	return host, judging, err
}

// Of are the rules that a change's offer is judged by. A revert is judged by none: what goes back has been there before, and
// rules that changed since, or that do not load, must not hold it.
func (g Reader) Of(ctx context.Context, row change.Row, host git.Dir, commit git.OID) (Judging, error) {
	if row.Request.Kind == request.Revert {
		return Judging{}, nil
	}
	return g.At(ctx, row.Request.Project, host, commit)
}

// At are what judges a change whose base is at commit.
func (g Reader) At(ctx context.Context, project git.Project, host git.Dir, commit git.OID) (Judging, error) {
	j, err := g.Rules.At(ctx, project, host, commit)
	if err != nil {
		return Judging{}, fmt.Errorf("read the rules at %.12s: %w", commit, err)
	}
	return j, nil
}

// Mode reads how a change is watched.
func (g Reader) Mode(ctx context.Context, row change.Row) (session.Supervision, error) {
	_, judging, err := g.AtBase(ctx, row)
	return judging.Watch(row.Request), err
}
