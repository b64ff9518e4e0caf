package ledger

import (
	"context"

	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
)

// KeepLanding moves a change whose landing stays to its end, and tells what it undoes, if it is a revert.
func (l *Ledger) KeepLanding(ctx context.Context, tx store.Tx, row *change.Row, kept landing.Landing, m Move) error {
	m.Digests = map[string]string{"commit": string(kept.NewCommit), "tree": string(kept.NewTree)}
	m.Next = "sallyport rollback " + string(row.ID)
	if err := l.Move(ctx, tx, row, m); err != nil {
		return err
	}
	switch row.Request.Kind {
	case request.Revert:
	case request.Swap:
		if !row.Request.OfAgent() { // the template has it, or it is nothing of the group's
			return nil
		}
		return l.Origin.askToPromote(ctx, tx, *row, kept.Edits)
	default:
		return nil
	}
	return l.MarkReverted(ctx, tx, row, kept)
}

// Free refuses while another change is on trial, or its landing is open, in the repository of row (SM-916). Beside the trial of a group
// whatever lies outside of that group lands; beside that of the host nothing does, in any repository.
func (l *Ledger) Free(ctx context.Context, tx store.Tx, row change.Row) error {
	open, err := tx.OpenTrials(ctx)
	if err != nil {
		return err
	}
	for _, t := range open {
		other, err := tx.Change(ctx, t.Change)
		if err != nil {
			return err
		}
		if other.ID == row.ID || other.State != change.InTrial {
			continue
		}
		if t.Target.Host {
			return problem.Case(ErrOnTrial, "sallyport change show "+string(other.ID),
				"%s has the host itself on trial, and nothing else lands until its end", other.ID)
		}
		if other.Request.Project.CommonDir != row.Request.Project.CommonDir {
			continue
		}
		beside, err := besides(ctx, tx, t, row)
		if err != nil {
			return err
		}
		if !beside {
			return problem.Case(ErrOnTrial, "sallyport change show "+string(other.ID),
				"%s is on trial in this repository, and sallyport waits for its end", other.ID)
		}
	}
	landings, err := tx.OpenLandings(ctx)
	if err != nil {
		return err
	}
	for _, other := range landings {
		if other.State == landing.Journaled && other.Change != row.ID && other.Project.CommonDir == row.Request.Project.CommonDir {
			return busy(other.Change)
		}
	}
	return nil
}

// NoneOnTrial refuses while any other change of this home is on trial.
func NoneOnTrial(ctx context.Context, tx store.Tx, row change.Row) error {
	open, err := tx.OpenTrials(ctx)
	if err != nil {
		return err
	}
	for _, t := range open {
		other, err := tx.Change(ctx, t.Change)
		if err != nil {
			return err
		}
		if other.ID != row.ID && other.State == change.InTrial {
			return problem.Case(ErrOnTrial, "sallyport change show "+string(other.ID), "%s is on trial, and a change of the host waits for its end", other.ID)
		}
	}
	return nil
}

// besides reports whether row may land while t is on trial.
func besides(ctx context.Context, tx store.Tx, t trial.Trial, row change.Row) (bool, error) {
	on, err := movedBy(ctx, tx, t)
	if err != nil {
		return false, err
	}
	own, tried, err := tx.Trial(ctx, row.ID)
	if err != nil {
		return false, err
	}
	if tried {
		next, err := movedBy(ctx, tx, own)
		return on.Beside(next), err
	}

	next := trial.Moves{}
	if row.Request.Kind == request.Swap {
		next.Group = row.Request.Group
	}
	p, _, err := tx.Proposal(ctx, row.ID)
	next.Edits = p.Edits
	return on.Beside(next), err
}

// movedBy is what the landing of a trial has moved.
func movedBy(ctx context.Context, tx store.Tx, t trial.Trial) (trial.Moves, error) {
	l, err := LandingNamed(ctx, tx, t.Landing)
	return trial.Moves{Group: t.Target.Group, Edits: l.Edits, Back: t.Handshake == trial.RolledBack}, err
}

// busy is why a landing waits for another.
func busy(other id.Change) error {
	return problem.Case(landing.ErrBusy, "sallyport change show "+string(other), "%s is landing in this repository, and sallyport waits for its end", other)
}

// TakeRepository takes the lease on the repository; landings on one go one at a time, and none beside a trial (SM-916).
func (l *Ledger) TakeRepository(ctx context.Context, row change.Row) (lease lock.Lease, err error) {
	key := "repo:" + row.Request.Project.CommonDir
	ok := false
	err = l.DB.InTx(ctx, func(tx store.Tx) error {
		if err := l.Free(ctx, tx, row); err != nil {
			return err
		}
		if lease, ok, err = tx.TakeLease(ctx, key, string(row.ID), Now(), LeaseTTL); err != nil || ok {
			return err
		}
		// A daemon that died may have had no time to give it back.
		holder, err := tx.Change(ctx, id.Change(lease.Holder))
		if err != nil || holder.State == change.Landing || holder.State == change.InTrial || holder.State == change.RollbackFailed {
			return err
		}
		if err := tx.DropLease(ctx, lease); err != nil {
			return err
		}
		lease, ok, err = tx.TakeLease(ctx, key, string(row.ID), Now(), LeaseTTL)
		return err
	})
	if err == nil && !ok {
		err = busy(id.Change(lease.Holder))
	}
	return lease, err
}

// DropRepository returns the lease on the repository.
func (l *Ledger) DropRepository(ctx context.Context, lease lock.Lease) {
	if err := l.DB.InTx(ctx, func(tx store.Tx) error { return tx.DropLease(ctx, lease) }); err != nil {
		l.Log.Warn("a lease was not returned; it ends by itself", "lease", lease.Key, "error", err)
	}
}

// Refresh reads a row anew within a transaction, if the step that has it still holds it.
func Refresh(ctx context.Context, tx store.Tx, row *change.Row) error {
	at, err := tx.Change(ctx, row.ID)
	if err == nil && at.Fence != row.Fence {
		err = change.ErrMoved
	}
	if err == nil {
		*row = at
	}
	return err
}
