package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
)

const (
	LeaseTTL    = 30 * time.Second // of the next step of one change
	AttemptsMax = 3                // of one step, when the machine is at fault
	LockedMax   = 5                // of a landing, when something else has locked the repository
	RetryWait   = time.Second      // before the second attempt; doubled after that
)

// TakeOver ends the leases of every earlier daemon of this home.
func (l *Ledger) TakeOver(ctx context.Context) error {
	return l.DB.InTx(ctx, func(tx store.Tx) error { return tx.ReleaseClaims(ctx, l.holder) })
}

// Claim takes the change that is due longest, or only, if that is not ""; false if none is due and free.
func (l *Ledger) Claim(ctx context.Context, only id.Change) (row change.Row, ok bool, err error) {
	// Looking first costs a read; claiming costs a durable write.
	due, any, err := l.nextDue(ctx)
	if err != nil || !any || due.After(time.Now()) {
		return change.Row{}, false, err
	}
	err = l.DB.InTx(ctx, func(tx store.Tx) error {
		if only != "" {
			row, ok, err = tx.ClaimOnly(ctx, only, l.holder, Now(), LeaseTTL)
			return err
		}
		row, ok, err = tx.ClaimDue(ctx, l.holder, Now(), LeaseTTL)
		return err
	})
	return row, ok, err
}

func (l *Ledger) nextDue(ctx context.Context) (due time.Time, any bool, err error) {
	err = l.DB.Read(ctx, func(tx store.Tx) error {
		due, any, err = tx.NextDue(ctx)
		return err
	})
	return due, any, err
}

// Owes reports whether anything is to be done by itself, now or later: a way back that has failed is tried again.
func (l *Ledger) Owes(ctx context.Context) bool {
	_, any, err := l.nextDue(ctx)
	return any || err != nil
}

// Sleep waits for a wake-up, for the next row to fall due, or for the end.
func (l *Ledger) Sleep(ctx context.Context) error {
	due, any, err := l.nextDue(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	var timer <-chan time.Time
	if any {
		t := time.NewTimer(max(time.Until(due), time.Millisecond))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-timer:
	}
	return nil
}

// StillOurs fails if the lease on a row went to another while this step waited for its turn. It takes over a wish to cancel that came
// meanwhile: who wished found no step to stop.
func (l *Ledger) StillOurs(ctx context.Context, row *change.Row) error {
	at, err := l.Row(ctx, row.ID)
	if err == nil && at.Fence != row.Fence {
		err = change.ErrMoved
	}
	row.Cancel = row.Cancel || at.Cancel
	return err
}

// Renew keeps the lease while a step runs; losing it ends the step.
func (l *Ledger) Renew(ctx context.Context, cancel context.CancelCauseFunc, row change.Row) {
	tick := time.NewTicker(LeaseTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := l.DB.InTx(ctx, func(tx store.Tx) error { return tx.RenewClaim(ctx, row, Now(), LeaseTTL) })
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("keep the lease of %s: %w", row.ID, err))
				return
			}
		}
	}
}

// Postpone leaves a row where it is and makes it due later.
func (l *Ledger) Postpone(ctx context.Context, tx store.Tx, row *change.Row, because error) error {
	wait := RetryWait << min(row.Attempts, 6)
	switch {
	case Waits(because): // that is no attempt
		wait = RetryWait
	case row.State == change.InTrial:
		wait = min(wait, 4*RetryWait)
		fallthrough
	default:
		row.Attempts++
	}
	p := problem.Of(because)
	row.Reason = l.Secrets.Redact(p.Text)
	if (row.State == change.RollbackFailed || row.State == change.Landing) && p.Next != "" {
		row.Next = l.Secrets.Redact(p.Next)
	}
	row.Holder, row.Until, row.Due = "", time.Time{}, Now().Add(wait)
	return tx.MoveChange(ctx, row.State, *row)
}

// Transient reports whether trying again may help: something missing, busy or broken, not a no.
func Transient(err error) bool {
	switch problem.KindOf(err) {
	case problem.Unavailable, problem.Internal:
		return true
	}
	return false
}

// Waits reports whether a landing's turn has not come: what is before it comes to its end by itself, or the owner has been told of it. A
// lock that anybody can take may not.
func Waits(because error) bool {
	return errors.Is(because, ErrOnTrial) || errors.Is(because, config.ErrUnloaded) || errors.Is(because, landing.ErrBusy) &&
		!errors.Is(because, landing.ErrLocked)
}

// ErrOnTrial holds back what would land beside an open trial.
var ErrOnTrial = problem.New(problem.Unavailable, "another change is on trial in this repository")
