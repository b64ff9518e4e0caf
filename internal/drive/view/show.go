package view

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

// Show reads all there is to know of a change from one snapshot.
func (v *Views) Show(ctx context.Context, changeID id.Change) (d Detail, err error) {
	err = v.DB.Read(ctx, func(tx store.Tx) error {
		d = Detail{}
		if d.Change, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if d.Sessions, err = tx.Sessions(ctx, changeID.Subject()); err != nil {
			return err
		}
		if d.Checkpoints, err = tx.Checkpoints(ctx, changeID); err != nil {
			return err
		}
		if d.Asked, err = tx.Asked(ctx, changeID.Subject()); err != nil {
			return err
		}
		if d.Uses, err = tx.Uses(ctx, changeID.Subject()); err != nil {
			return err
		}
		if p, ok, err := tx.Proposal(ctx, changeID); err != nil {
			return err
		} else if ok {
			d.Proposal = &p
		}
		if l, ok, err := tx.LandingOf(ctx, changeID); err != nil {
			return err
		} else if ok {
			d.Landing = &l
		}
		if err := readTrial(ctx, tx, &d); err != nil {
			return err
		}
		if a, err := tx.LatestApproval(ctx, changeID); err == nil {
			d.Approval = &a
		} else if problem.KindOf(err) != problem.NotFound {
			return err
		}
		return nil
	})
	if err == nil && d.Change.State == change.Working {
		d.Progress = v.progress(ctx, d)
	}
	if err == nil {
		v.Land.AddMoved(ctx, d.Change, d.Proposal)
	}
	return d, err
}

// readTrial adds a change's trial, with the landing that is tried and the one that takes it back.
func readTrial(ctx context.Context, tx store.Tx, d *Detail) error {
	t, ok, err := tx.Trial(ctx, d.Change.ID)
	if err != nil || !ok {
		return err
	}
	d.Trial = &t
	tried, err := ledger.LandingNamed(ctx, tx, t.Landing)
	if err != nil {
		return err
	}
	d.Landing = &tried
	if t.Undoing == "" {
		return nil
	}
	undoing, err := ledger.LandingNamed(ctx, tx, t.Undoing)
	if err == nil {
		d.Undoing = &undoing
	}
	return err
}

// progress looks at a working change: names on the writable side, no more.
func (v *Views) progress(ctx context.Context, d Detail) *change.Progress {
	p := &change.Progress{Since: d.Change.Moved}
	ws, err := v.Workspaces.Open(ctx, v.Spec(d.Change))
	if err != nil {
		return p
	}
	if diff, err := v.Workspaces.Walk(ctx, ws); err == nil {
		p.FilesChanged = len(diff.Changes)
	}
	return p
}

// Transcript opens that of a session of a change, the last one if which is ""; before its agent has begun, what a failed setup printed.
func (v *Views) Transcript(ctx context.Context, change id.Change, which id.Session) (io.ReadCloser, error) {
	all, err := v.Sessions(ctx, change)
	if err != nil {
		return nil, err
	}
	if _, err := v.Row(ctx, change); err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if which == "" || all[i].ID == which {
			return session.OpenTranscript(filepath.Join(v.SessionsDir, string(all[i].ID)))
		}
	}
	if which == "" {
		return v.setupTranscript(change)
	}
	return nil, problem.Errorf(problem.NotFound, "sallyport change show "+string(change), "%s has no session %s", change, which)
}

// setupTranscript is what the setup of a change printed whose agent has not begun.
func (v *Views) setupTranscript(change id.Change) (io.ReadCloser, error) {
	if dir := session.SetupDir(v.ChangesDir, change); session.HasTranscript(dir) {
		return session.OpenTranscript(dir)
	}
	return nil, problem.Errorf(problem.NotFound, "sallyport change show "+string(change), "%s has no transcript: its agent has not begun", change)
}

// Approval returns one with its proposal; ref is an approval id or the id of a change with one.
func (v *Views) Approval(ctx context.Context, ref string) (a approval.Approval, p proposal.Proposal, err error) {
	var row change.Row
	err = v.DB.Read(ctx, func(tx store.Tx) error {
		if id.KindOf(ref) == "approval" {
			a, err = tx.Approval(ctx, id.Approval(ref))
		} else {
			if _, err = tx.Change(ctx, id.Change(ref)); err != nil {
				return err
			}
			a, err = tx.LatestApproval(ctx, id.Change(ref))
		}
		if err != nil {
			return err
		}
		var ok bool
		if p, ok, err = tx.Proposal(ctx, a.Change); err == nil && !ok {
			err = fmt.Errorf("%s has no proposal", a.Change)
		}
		if err == nil {
			row, err = tx.Change(ctx, a.Change)
		}
		return err
	})
	if err == nil {
		v.Land.AddMoved(ctx, row, &p)
	}
	return a, p, err
}
