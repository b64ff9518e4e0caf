package land

import (
	"context"
	"errors"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
)

// Restore lands the inverse of what is on trial. A landing that an earlier try left open comes first.
func (ls *Landings) Restore(ctx context.Context, row change.Row, t *trial.Trial) error {
	lease, err := ls.TakeRepository(ctx, row)
	if err != nil {
		return err
	}
	defer ls.DropRepository(ctx, lease)
	if err := row.Request.Project.Plain(); err != nil {
		return err
	}
	tried, open, err := ls.landingsOf(ctx, *t)
	if err != nil {
		return err
	}
	steps := ls.undoing(ctx, row, t)
	if open.State == landing.Journaled || open.State == landing.Stranded {
		closed, err := ls.Lander.Recover(ctx, open, steps)
		if err != nil || closed.State != landing.Undone {
			return notBack(closed, err)
		}
	}
	for range staleMax {
		var made landing.Landing
		if made, err = ls.inverse(ctx, row, *t, tried); err != nil {
			return err
		}
		if made, err = ls.Lander.Land(ctx, made, steps); !errors.Is(err, landing.ErrStale) {
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
func (ls *Landings) landingsOf(ctx context.Context, t trial.Trial) (tried, undoing landing.Landing, err error) {
	err = ls.DB.Read(ctx, func(tx store.Tx) error {
		if tried, err = ledger.LandingNamed(ctx, tx, t.Landing); err != nil || t.Undoing == "" {
			return err
		}
		undoing, err = ledger.LandingNamed(ctx, tx, t.Undoing)
		return err
	})
	return tried, undoing, err
}

// inverse computes the landing that takes another back, on the branch as it is today.
func (ls *Landings) inverse(ctx context.Context, row change.Row, t trial.Trial, tried landing.Landing) (landing.Landing, error) {
	site, err := ls.Lander.Inspect(ctx, tried.Project, tried.Branch)
	if err != nil {
		return landing.Landing{}, err
	}
	made, err := ls.Commits.ForTakeBack(ctx, row, t, tried)
	if err != nil {
		return landing.Landing{}, err
	}
	return ls.Lander.Compute(ctx, landing.Order{
		Landing: id.NewLanding(), Change: row.ID, Project: tried.Project, Branch: tried.Branch, WorkTree: site.CheckedOut,
		Back: true, Base: tried.NewCommit, Edits: landing.Inverse(tried.Edits), Source: tried.Head, Author: made.Author,
		Committer: made.Committer, Message: made.Message,
	})
}

// undoing writes the journal of a landing that takes one back: the trial names it from before anything moves, and
// says that the old files are back in the transaction that closes it.
func (ls *Landings) undoing(ctx context.Context, row change.Row, t *trial.Trial) landing.Steps {
	write := func(next trial.Trial, l landing.Landing, verb, reason string, do func(tx store.Tx) error) error {
		err := ls.DB.InTx(ctx, func(tx store.Tx) error {
			if err := do(tx); err != nil {
				return err
			}
			if err := tx.MoveTrial(ctx, trial.RolledBack, next); err != nil {
				return err
			}
			return ls.Append(ctx, tx, &change.Row{ID: row.ID, Reason: reason},
				ledger.Move{By: audit.Host, Subject: string(l.ID), Digests: landingDigests(l)}, verb, ledger.Now())
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
			return write(next, l, "began to roll back", t.Why(), func(tx store.Tx) error { return tx.AddLanding(ctx, l) })
		},
		Again: func(l landing.Landing) error {
			return write(*t, l, "began anew to roll back", l.Reason, func(tx store.Tx) error { return closeLanding(ctx, tx, ls.Secrets, l) })
		},
		Close: func(l landing.Landing) error {
			next, verb := *t, "could not roll back"
			if l.State == landing.Landed {
				next.Restored, verb = true, "restored the old files"
			}
			return write(next, l, verb, l.Reason, func(tx store.Tx) error { return closeLanding(ctx, tx, ls.Secrets, l) })
		},
	}
}

// StandDown ends the keeper's watch over what was given up, and puts away what a landing has left beside a person's files;
// without a trial or a landing it does nothing.
func (ls *Landings) StandDown(ctx context.Context, row change.Row) {
	if row.State != change.Failed {
		return
	}
	var l landing.Landing
	var watched id.Landing
	err := ls.DB.Read(ctx, func(tx store.Tx) (err error) {
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
		ls.Log.Warn("sallyport could not read whether a keeper watches the change", "change", row.ID, "error", err)
	}
	if watched != "" {
		ls.Guard.Disarm(watched)
	}
	if l.State == landing.Stranded {
		if _, err := ls.Lander.Clear(ctx, l); err != nil {
			ls.Log.Warn("files of an unfinished landing are still in the repository; sallyport gc removes them", "landing", l.ID, "error", err)
		}
	}
}
