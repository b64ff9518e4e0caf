// Package prepare gives a change a workspace on its base: the first one, or another on a base that has moved.
package prepare

import (
	"cmp"
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/revert"
	"sallyport/internal/drive/standing"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/path/workspace"
	"sallyport/internal/store"
)

// Parts are what a workspace is prepared with.
type Parts struct {
	*ledger.Ledger
	Workspaces *workspace.Manager
	Opener     work.Opener
	Stocks     *stock.Stocks
	Reverts    *revert.Reverts
	Standing   *standing.Groups
	Takes      *supervise.Checkpointer
}

// Preparer prepares workspaces.
type Preparer struct{ Parts }

// New returns a Preparer.
func New(p Parts) *Preparer { return &Preparer{p} }

// Prepare keeps the base in the host's repository and makes the workspace on it.
func (p *Preparer) Prepare(ctx context.Context, row change.Row) error {
	switch {
	case row.Request.Kind == request.Revert:
		return p.Reverts.Compute(ctx, row)
	case row.Request.Drafted():
		return p.Standing.Compute(ctx, row)
	}
	if before, err := p.Superseded(ctx, row); err != nil || before != nil {
		if err != nil {
			return err
		}
		return p.prepareAgain(ctx, row)
	}
	r := row.Request
	host, err := p.Workspaces.EnsureRepository(ctx, r.Project, cmp.Or(git.OID(row.Base), r.Head))
	if err != nil {
		return err
	}
	base, err := p.startsFrom(ctx, row)
	if err == nil && r.Kind == request.Swap && row.Base == "" {
		base, err = p.Standing.Overlay(ctx, row)
	}
	if err != nil {
		return err
	}
	if err := p.Workspaces.Repositories.Keep(ctx, r.Project, row.ID, base); err != nil {
		return err
	}
	judging, err := p.Opener.Grounds.At(ctx, r.Project, host, base)
	if err != nil {
		return err
	}
	row.Base = string(base)
	said, err := p.makeWorkspace(ctx, p.Opener.With(row, host, judging))
	if err != nil {
		return err
	}
	_, err = p.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return p.Move(ctx, tx, row, ledger.Move{Event: change.Prepared, By: audit.Host, Reason: said, Digests: map[string]string{"base": row.Base}})
	})
	return err
}

// makeWorkspace makes the workspace of a change with what its setup leaves on the base, and says what of that is not there.
func (p *Preparer) makeWorkspace(ctx context.Context, w work.Work) (said string, err error) {
	setup, release, err := p.Stocks.SetUp(ctx, w, w.Spec.Base)
	if err != nil {
		return "", err
	}
	defer release()
	spec := w.Spec
	if !setup.None() {
		spec.Setup = setup.ID.String()
	}
	if _, err := p.Workspaces.Prepare(ctx, spec); err != nil {
		return "", fmt.Errorf("prepare the workspace: %w", err)
	}
	p.Stocks.Warm(w)
	return stock.Lost(setup.Note), nil
}

// prepareAgain gives a change that is made anew a workspace on its new base, with what it is to start from. What
// stood on the old base is kept under its refs, and no checkpoint of it counts as the last valid one any more.
func (p *Preparer) prepareAgain(ctx context.Context, row change.Row) error {
	base := git.OID(row.Base)
	if err := p.Workspaces.Repositories.Keep(ctx, row.Request.Project, row.ID, base); err != nil {
		return err
	}
	w, err := p.Opener.Open(ctx, row)
	if err != nil {
		return err
	}
	if err := p.Workspaces.Remove(ctx, row.ID); err != nil {
		return fmt.Errorf("remove the workspace on the old base: %w", err)
	}
	valid := checkpoint.ValidRef(row.ID)
	refs, err := w.Host.Refs(ctx, valid)
	if err != nil {
		return err
	}
	if err := repository.DropRefs(ctx, w.Host, refs); err != nil {
		return err
	}
	said, err := p.makeWorkspace(ctx, w)
	if err != nil {
		return err
	}
	if row.From != "" {
		ws, err := p.Workspaces.Renew(ctx, w.Judged(), w.Host, git.OID(row.From))
		if err != nil {
			return err
		}
		sessions, err := p.Sessions(ctx, row.ID)
		if err != nil {
			return err
		}
		t := supervise.Taking{Why: checkpoint.Restored, Session: sessions[len(sessions)-1].ID, Since: row.Moved}
		if _, err := p.Takes.Take(ctx, w, ws, t); err != nil {
			return fmt.Errorf("take a checkpoint of what applied: %w", err)
		}
	}
	_, err = p.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return p.Move(ctx, tx, row, ledger.Move{Event: change.Prepared, By: audit.Host, Reason: said, Digests: map[string]string{"base": row.Base}})
	})
	return err
}
