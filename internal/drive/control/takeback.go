package control

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
)

// takeBack brings the old files back by a landing of their own, forwards, has the old version come up as the new one
// had to, and only then says so (SM-127, SM-129, SM-905, SM-906). What cannot be done is rollback_failed, and tried again.
func (c *Controller) takeBack(ctx context.Context, row change.Row, t trial.Trial) error {
	release, err := c.guard.Hold(t.Landing)
	if err != nil { // going back needs no keeper
		c.Log.Warn("no keeper watches this rollback", "change", row.ID, "error", err)
		release = func() {}
	}
	defer release()
	err = c.goneBack(ctx, row, &t)
	switch {
	case ctx.Err() != nil: // the keeper stays armed, and brings back a daemon that goes on
		return context.Cause(ctx)
	case errors.Is(err, landing.ErrBusy) && row.Attempts+1 < ledger.AttemptsMax:
		return err // somebody else's short work; the keeper stays armed
	}
	release()
	if err != nil {
		c.guard.Disarm(t.Landing)
		return c.stuck(ctx, row, err)
	}
	ended, err := c.InTx(context.WithoutCancel(ctx), row, func(tx store.Tx, row *change.Row) error {
		if err := fresh(ctx, tx, row); err != nil {
			return err
		}
		return c.Move(ctx, tx, row, ledger.Move{
			Event: change.TakenBack, By: *t.By, Verb: "rolled back", Subject: string(t.Undoing), Reason: t.Said(), Next: "sallyport change diff " + string(row.ID),
		})
	})
	if err != nil {
		return err
	}
	c.guard.Disarm(t.Landing)
	c.tidy(c.Lasting(), ended)
	return nil
}

// fresh reads a row anew within a transaction, if the step that has it still holds it.
func fresh(ctx context.Context, tx store.Tx, row *change.Row) error {
	at, err := tx.Change(ctx, row.ID)
	if err == nil && at.Fence != row.Fence {
		err = change.ErrMoved
	}
	if err == nil {
		*row = at
	}
	return err
}

// goneBack does what of the way back is not done yet.
func (c *Controller) goneBack(ctx context.Context, row change.Row, t *trial.Trial) error {
	if !t.Restored {
		if err := c.restore(context.WithoutCancel(ctx), row, t); err != nil {
			return err
		}
	}
	if t.Target.None() {
		return nil
	}
	// What another change has on trial by now is not restarted beside it, nor does it answer for the old version.
	err := c.DB.Read(ctx, func(tx store.Tx) error { return c.free(ctx, tx, row) })
	if err == nil {
		err = c.inPlace(ctx, row)
	}
	if err != nil {
		return err
	}
	if err := c.startAgain(ctx, row, *t); err != nil {
		return fmt.Errorf("sallyport restored the old files, but the old version does not answer: %w", err)
	}
	return nil
}

// restore lands the inverse of what is on trial. A landing that an earlier try left open comes first.
func (c *Controller) restore(ctx context.Context, row change.Row, t *trial.Trial) error {
	lease, err := c.takeRepository(ctx, row)
	if err != nil {
		return err
	}
	defer c.dropRepository(ctx, lease)
	if err := row.Request.Project.Plain(); err != nil {
		return err
	}
	tried, open, err := c.landingsOf(ctx, *t)
	if err != nil {
		return err
	}
	steps := c.undoing(ctx, row, t)
	if open.State == landing.Journaled || open.State == landing.Stranded {
		closed, err := c.Lander.Recover(ctx, open, steps)
		if err != nil || closed.State != landing.Undone {
			return notBack(closed, err)
		}
	}
	for range staleMax {
		var made landing.Landing
		if made, err = c.inverse(ctx, row, *t, tried); err != nil {
			return err
		}
		if made, err = c.Lander.Land(ctx, made, steps); !errors.Is(err, landing.ErrStale) {
			return notBack(made, err)
		}
	}
	return err
}

// notBack is why a landing that was to bring the old files back did not; nil if it did.
func notBack(l landing.Landing, err error) error {
	switch {
	case err != nil:
		return err
	case l.State == landing.Landed:
		return nil
	}
	return problem.Errorf(problem.Refused, "", "sallyport could not restore the old files: %s", l.Reason)
}

// landingsOf returns the landing on trial and the one that takes it back, the zero one if there is none.
func (c *Controller) landingsOf(ctx context.Context, t trial.Trial) (tried, undoing landing.Landing, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		if tried, err = ledger.LandingNamed(ctx, tx, t.Landing); err != nil || t.Undoing == "" {
			return err
		}
		undoing, err = ledger.LandingNamed(ctx, tx, t.Undoing)
		return err
	})
	return tried, undoing, err
}

// inverse computes the landing that takes another back, on the branch as it is today.
func (c *Controller) inverse(ctx context.Context, row change.Row, t trial.Trial, tried landing.Landing) (landing.Landing, error) {
	site, err := c.Lander.Inspect(ctx, tried.Project, tried.Branch)
	if err != nil {
		return landing.Landing{}, err
	}
	made, err := c.commits.TakeBack(ctx, row, t, tried)
	if err != nil {
		return landing.Landing{}, err
	}
	return c.Lander.Compute(ctx, landing.Order{
		Landing: id.NewLanding(), Change: row.ID, Project: tried.Project, Branch: tried.Branch, WorkTree: site.CheckedOut,
		Back: true, Base: tried.NewCommit, Edits: landing.Inverse(tried.Edits), Source: tried.Head, Author: made.Author, Committer: made.Committer, Message: made.Message,
	})
}

// undoing writes the journal of a landing that takes one back: the trial names it from before anything moves, and
// says that the old files are back in the transaction that closes it.
func (c *Controller) undoing(ctx context.Context, row change.Row, t *trial.Trial) landing.Steps {
	write := func(next trial.Trial, l landing.Landing, verb, reason string, do func(tx store.Tx) error) error {
		err := c.DB.InTx(ctx, func(tx store.Tx) error {
			if err := do(tx); err != nil {
				return err
			}
			if err := tx.MoveTrial(ctx, trial.RolledBack, next); err != nil {
				return err
			}
			return c.Append(ctx, tx, &change.Row{ID: row.ID, Reason: reason}, ledger.Move{By: audit.Host, Subject: string(l.ID), Digests: map[string]string{"head": string(l.Head), "tree": string(l.NewTree), "commit": string(l.NewCommit)}}, verb, ledger.Now())
		})
		if err == nil {
			*t = next
		}
		return err
	}
	return landing.Steps{
		Journal: func(l landing.Landing) error {
			next := *t
			next.Undoing = l.ID
			return write(next, l, "began to roll back", t.Reason, func(tx store.Tx) error { return tx.AddLanding(ctx, l) })
		},
		Again: func(l landing.Landing) error {
			return write(*t, l, "began anew to roll back", l.Reason, func(tx store.Tx) error { return tx.CloseLanding(ctx, l) })
		},
		Close: func(l landing.Landing) error {
			next, verb := *t, "could not roll back"
			if l.State == landing.Landed {
				next.Restored, verb = true, "restored the old files"
			}
			return write(next, l, verb, l.Reason, func(tx store.Tx) error { return tx.CloseLanding(ctx, l) })
		},
	}
}

// stuck says loudly that a way back has failed; it is tried again with longer and longer pauses.
func (c *Controller) stuck(ctx context.Context, row change.Row, because error) error {
	ctx = context.WithoutCancel(ctx)
	p := problem.Of(because)
	if p.Next == "" {
		p.Next = "sallyport change show " + string(row.ID)
	}
	because = problem.Errorf(problem.Internal, p.Next, "sallyport could not roll the change back, and tries again: %s (sallyport change cancel %s leaves the new files as they stand)", p.Text, row.ID)
	if change.State(row.State) == change.RollbackFailed {
		return because
	}
	_, err := c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		if err := fresh(ctx, tx, row); err != nil {
			return err
		}
		return c.Move(ctx, tx, row, ledger.Move{Event: change.Stuck, By: audit.Host, Verb: "rollback failed", Because: because, Wait: ledger.RetryWait})
	})
	return err
}

// standDown ends the keeper's watch over what was given up, and puts away what a landing has left beside a person's files;
// without a trial or a landing it does nothing.
func (c *Controller) standDown(ctx context.Context, row change.Row) {
	if change.State(row.State) != change.Failed {
		return
	}
	var l landing.Landing
	var watched id.Landing
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		if l, _, err = tx.LandingOf(ctx, row.ID); err != nil {
			return err
		}
		t, tried, err := tx.Trial(ctx, row.ID)
		if watched = l.ID; tried {
			watched = t.Landing
		}
		return err
	})
	if err != nil {
		c.Log.Warn("sallyport could not read whether a keeper watches the change", "change", row.ID, "error", err)
	}
	if watched != "" {
		c.guard.Disarm(watched)
	}
	if l.State == landing.Stranded {
		if _, err := c.Lander.Clear(ctx, l); err != nil {
			c.Log.Warn("files of an unfinished landing are still in the repository; sallyport gc removes them", "landing", l.ID, "error", err)
		}
	}
}
