package control

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sallyport/internal/base/git"
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
func (c *Controller) Show(ctx context.Context, changeID id.Change) (d Detail, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		d = Detail{}
		if d.Change, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if d.Sessions, err = tx.Sessions(ctx, changeID); err != nil {
			return err
		}
		if d.Checkpoints, err = tx.Checkpoints(ctx, changeID); err != nil {
			return err
		}
		if d.Asked, err = tx.Asked(ctx, changeID); err != nil {
			return err
		}
		if d.Uses, err = tx.Uses(ctx, changeID); err != nil {
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
		d.Progress = c.progress(ctx, d)
	}
	if err == nil {
		c.land.AddMoved(ctx, d.Change, d.Proposal)
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
func (c *Controller) progress(ctx context.Context, d Detail) *change.Progress {
	p := &change.Progress{Since: d.Change.Moved}
	ws, err := c.Workspaces.Open(ctx, c.spec(d.Change))
	if err != nil {
		return p
	}
	if diff, err := c.Workspaces.Walk(ctx, ws); err == nil {
		p.FilesChanged = len(diff.Changes)
	}
	return p
}

// Diff writes the unified diff of what is proposed or was landed; without a proposal, of the last checkpoint.
func (c *Controller) Diff(ctx context.Context, change id.Change, w io.Writer) error {
	return c.patch(ctx, change, w, false)
}

// Export writes the same as a patch with binary data that `git apply` takes.
func (c *Controller) Export(ctx context.Context, change id.Change, w io.Writer) error {
	return c.patch(ctx, change, w, true)
}

func (c *Controller) patch(ctx context.Context, change id.Change, w io.Writer, binary bool) error {
	d, err := c.Show(ctx, change)
	if err != nil {
		return err
	}
	var from, to git.OID
	var exact error
	switch n := len(d.Checkpoints); {
	case d.Proposal != nil:
		from, to = d.Proposal.Base, d.Proposal.Commit
	case n > 0:
		from, to = d.Checkpoints[n-1].Base, d.Checkpoints[n-1].Commit
		exact = exportable(d.Checkpoints[n-1])
	default:
		return problem.Errorf(problem.NotFound, "sallyport change show "+string(change), "%s has changed nothing yet: it is %s", change, d.Change.State)
	}
	host, err := c.holding(ctx, d.Change, to)
	if err != nil {
		return err
	}
	return c.show(ctx, host, showing{from, to, binary, exact}, w)
}

func (c *Controller) Transcript(ctx context.Context, change id.Change, which id.Session) (io.ReadCloser, error) {
	all, err := c.Sessions(ctx, change)
	if err != nil {
		return nil, err
	}
	if _, err := c.Row(ctx, change); err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		if which == "" || all[i].ID == which {
			return session.OpenTranscript(c.sessionDir(all[i].ID))
		}
	}
	if which == "" {
		return c.setupTranscript(change)
	}
	return nil, problem.Errorf(problem.NotFound, "sallyport change show "+string(change), "%s has no session %s", change, which)
}

// Approval returns one with its proposal; ref is an approval id or the id of a change with one.
func (c *Controller) Approval(ctx context.Context, ref string) (a approval.Approval, p proposal.Proposal, err error) {
	var row change.Row
	err = c.DB.Read(ctx, func(tx store.Tx) error {
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
		c.land.AddMoved(ctx, row, &p)
	}
	return a, p, err
}

// holding returns the host's repository, once a commit of the change is in it. Errors: problem.NotFound if it has been removed.
func (c *Controller) holding(ctx context.Context, row change.Row, commit git.OID) (git.Dir, error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
		return host, err
	}
	there, err := host.Resolve(ctx, string(commit)+"^{tree}")
	var failed *git.Failure
	if err != nil && !errors.As(err, &failed) {
		return host, err
	}
	if there == "" {
		return host, problem.Errorf(problem.NotFound, "sallyport audit list --change "+string(row.ID), "the checkpoints of %s were removed when their time was over; the audit log has what is left", row.ID)
	}
	return host, nil
}

// CheckpointDiff writes the unified diff between two checkpoints of one change; from "" is its base.
func (c *Controller) CheckpointDiff(ctx context.Context, from, to id.Checkpoint, w io.Writer) error {
	return c.between(ctx, from, to, w, false)
}

// CheckpointExport writes what a checkpoint differs in from its base, as a patch with binary data that `git apply` takes.
func (c *Controller) CheckpointExport(ctx context.Context, ref id.Checkpoint, w io.Writer) error {
	return c.between(ctx, "", ref, w, true)
}

func (c *Controller) between(ctx context.Context, from, to id.Checkpoint, w io.Writer, binary bool) error {
	b, err := c.Checkpoint(ctx, to)
	if err != nil {
		return err
	}
	start, exact := b.Base, exportable(b)
	if from != "" {
		a, err := c.Checkpoint(ctx, from)
		if err != nil {
			return err
		}
		if a.Change != b.Change {
			return problem.Errorf(problem.Usage, "sallyport checkpoint list "+string(b.Change), "%s belongs to %s and %s to %s", from, a.Change, to, b.Change)
		}
		start = a.Commit
	}
	row, err := c.Row(ctx, b.Change)
	if err != nil {
		return err
	}
	host, err := c.holding(ctx, row, b.Commit)
	if err != nil {
		return err
	}
	return c.show(ctx, host, showing{start, b.Commit, binary, exact}, w)
}
