// Package tidy clears up after changes that have ended: their workspaces, their refs, and what is remembered of them. What a change
// did has a ref before its workspace goes.
package tidy

import (
	"context"
	"slices"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/land"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/supervise"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/store"
)

// Parts are what is tidied, and with what.
type Parts struct {
	*ledger.Ledger
	Workspaces *workspace.Manager
	Opener     work.Opener
	Checks     *check.Checker
	Land       *land.Landings
	Backups    string // folder of the database's copies
	Ops        disk.Ops
	Works      *lock.Keyed[id.Change] // one step of a change, or the clearing up after its last one, at a time
	Takes      *supervise.Checkpointer
}

// Tidier tidies up.
type Tidier struct{ Parts }

// New returns a Tidier.
func New(p Parts) *Tidier { return &Tidier{p} }

// Tidy removes the workspace of a change that has ended. Its work stays under its refs: as
// long as it has none, the workspace stays. What is not done now is done by the sweep. It is called by
// the step that ended the change; others call TidyApart.
func (t *Tidier) Tidy(ctx context.Context, row change.Row) {
	t.Checks.Forget(row.ID) // nobody will be asked about it
	t.Land.Forget(row.ID)
	if err := whole.Remove(t.Ops, "snapshot:drop", store.SnapshotPath(t.Backups, row.ID)); err != nil {
		t.Log.Warn("the copy of the database from before a change was not removed", "change", row.ID, "error", err)
	}
	if row.Base == "" || !row.Request.Worked() {
		return
	}
	if t.keepsTree(ctx, row) {
		return
	}
	if err := t.keepWork(ctx, row); err != nil {
		t.Log.Warn("the work of a change could not be recorded, so its workspace stays", "change", row.ID, "error", err)
		return
	}
	if is, err := t.Row(ctx, row.ID); err != nil || !is.State.Final() {
		return // it was taken up again meanwhile
	}
	if err := t.Workspaces.Remove(ctx, row.ID); err != nil {
		t.Log.Warn("a workspace was not removed", "change", row.ID, "error", err)
	}
	t.trim(ctx)
}

// trim keeps the cache of base layers within its bounds, now that fewer may be in use.
func (t *Tidier) trim(ctx context.Context) {
	if _, err := t.Workspaces.Layers.Trim(ctx); err != nil && ctx.Err() == nil {
		t.Log.Warn("the cache of base layers could not be trimmed", "error", err)
	}
	if _, err := t.Workspaces.Stocks.Trim(ctx); err != nil && ctx.Err() == nil {
		t.Log.Warn("the caches of setups and checks could not be trimmed", "error", err)
	}
}

// TidyApart tidies up after a change that no step holds; a step that begins meanwhile waits.
func (t *Tidier) TidyApart(ctx context.Context, row change.Row) {
	leave, err := t.Works.Take(ctx, row.ID)
	if err != nil {
		return
	}
	defer leave()
	t.Tidy(ctx, row)
}

// keepsTree reports whether the tree of a session that failed is to stay for a person to look at (SV-033).
func (t *Tidier) keepsTree(ctx context.Context, row change.Row) bool {
	if row.State != change.Failed {
		return false
	}
	mode, err := t.Opener.Grounds.Mode(ctx, row)
	return err == nil && mode.Strategy == session.Shadow && mode.KeepOnFailure
}

// keepWork puts what the last session of a change did under a ref, unless it is there already.
func (t *Tidier) keepWork(ctx context.Context, row change.Row) error {
	sessions, err := t.Sessions(ctx, row.ID)
	if err != nil || len(sessions) == 0 {
		return err
	}
	last := sessions[len(sessions)-1]
	taken, err := t.Checkpoints(ctx, row.ID)
	if err != nil || slices.ContainsFunc(taken, func(cp checkpoint.Checkpoint) bool {
		return cp.Session == last.ID && !cp.At.Before(last.Started) && (cp.Trigger == checkpoint.AtEnd || cp.Trigger == checkpoint.Interrupted)
	}) {
		return err
	}
	ws, err := t.Workspaces.Open(ctx, t.Opener.Spec(row))
	if problem.KindOf(err) == problem.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	w, err := t.Opener.Open(ctx, row)
	if err != nil {
		return err
	}
	_, err = t.Takes.Take(ctx, w, ws, supervise.Taking{Why: checkpoint.Interrupted, Session: last.ID, Since: last.Started})
	return err
}

// Sweep tidies up after changes that ended when a daemon had no time left to do it.
func (t *Tidier) Sweep(ctx context.Context) {
	there, err := t.Workspaces.Changes()
	if err != nil {
		t.Log.Warn("the workspaces could not be listed", "error", err)
	}
	for _, changeID := range there {
		row, err := t.Row(ctx, changeID)
		switch {
		case err != nil: // package storage gives its work a ref first
			t.Log.Warn("a workspace has no change", "workspace", changeID, "error", err)
		case row.State.Final():
			t.TidyApart(ctx, row)
		}
	}
	t.trim(ctx)
}
