package supervise

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/workspace"
	"sallyport/internal/store"
)

// Checkpointer takes checkpoints of workspaces and records them.
type Checkpointer struct {
	*ledger.Ledger
	Workspaces *workspace.Manager
	Grounds    grounds.Reader
	Notebook   Notebook
	Author     git.Signature // of the commits; At is ignored
}

// Taking says why a checkpoint is taken, and of which session.
type Taking struct {
	Why     checkpoint.Trigger
	Session id.Session
	Since   time.Time // the session's start
	Live    bool      // the session runs; it stands while this is taken
}

// Take takes one checkpoint and records it.
func (c *Checkpointer) Take(ctx context.Context, w work.Work, ws workspace.Workspace, t Taking) (checkpoint.Taken, error) {
	row := w.Row
	before, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return checkpoint.Taken{}, err
	}
	var previous *checkpoint.Checkpoint
	if n := len(before); n > 0 {
		previous = &before[n-1]
	}
	if !t.Live && previous != nil && previous.Session == t.Session && previous.Trigger == t.Why && previous.Base == ws.Spec.Base &&
		!previous.At.Before(t.Since) {
		// It is recorded: a crash came before the move that follows it.
		edits, err := w.Host.Edits(ctx, previous.Base, previous.Commit)
		return checkpoint.Taken{Checkpoint: *previous, Edits: edits}, err
	}
	mode := w.Mode()
	taken, err := checkpoint.Take(ctx, checkpoint.Taking{
		Workspaces: c.Workspaces, Workspace: ws, Host: w.Host, Previous: previous,
		Trigger: t.Why, Session: t.Session, At: ledger.Now(), Author: c.Author,
		Plan: grounds.Plan(row.Request), Rules: w.Judging.Rules, Secrets: w.Judging.Secrets,
		IncludeIgnored: w.Judged().IncludeIgnored,
		Floor:          mode.Floor, Unjudged: t.Live && mode.Unvalidated && t.Why != checkpoint.TurnEnded,
		Load: c.Grounds.Loading(row, ws.Spec.Base), Meter: c.Meter,
	})
	if err != nil {
		return checkpoint.Taken{}, err
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.AddCheckpoint(ctx, taken.Checkpoint); err != nil {
			return err
		}
		return c.Append(ctx, tx, &change.Row{ID: row.ID}, ledger.Move{ // why the row stands where it does, such as a pause, is not why this was taken
			By: audit.Host, Subject: string(taken.Checkpoint.ID),
			Digests: map[string]string{"commit": string(taken.Checkpoint.Commit), "tree": string(taken.Checkpoint.Tree), "base": row.Base},
		}, "checkpointed: "+string(taken.Checkpoint.Status), taken.Checkpoint.At)
	})
	if err == nil {
		c.Feed.Publish(change.Notice{Change: row.ID, At: taken.Checkpoint.At, Kind: "checkpoint", Checkpoint: &taken.Checkpoint})
		c.note(ctx, row.ID)
	}
	return taken, err
}

// Valid is the last valid checkpoint of a change, or its base: what can be gone back to.
func (c *Checkpointer) Valid(ctx context.Context, w work.Work) (git.OID, error) {
	ref := checkpoint.ValidRef(w.Row.ID)
	refs, err := w.Host.Refs(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("find the last valid checkpoint of %s: %w", w.Row.ID, err)
	}
	if at := refs[ref]; at != "" {
		return at, nil
	}
	return git.OID(w.Row.Base), nil
}

// Notebook keeps a copy, for people to read, of what the database holds of a change (SV-041).
type Notebook interface {
	// Write replaces the notes of a change, whole or not at all. A mode that a person wrote there stays.
	Write(ctx context.Context, change id.Change, checkpoints []checkpoint.Checkpoint) error
	// Deterministic reports whether the notes ask for that execution mode; false without notes.
	Deterministic(ctx context.Context, change id.Change) (bool, error)
}

// note writes a change's checkpoints to its notes. They are a copy: what cannot be written is said
// and written with the next checkpoint.
func (c *Checkpointer) note(ctx context.Context, change id.Change) {
	all, err := c.Checkpoints(ctx, change)
	if err == nil {
		err = c.Notebook.Write(ctx, change, all)
	}
	if err != nil {
		c.Log.Warn("the state.md of a change was not written; the next checkpoint tries again", "change", change, "error", err)
	}
}
