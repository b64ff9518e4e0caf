package ledger

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// Rollbacks are the open rollbacks of what r rolls back.
func Rollbacks(ctx context.Context, tx store.Tx, r request.Request) (open []change.Row, err error) {
	all, err := tx.Changes(ctx, change.Filter{Top: r.Project.Top, States: change.Open(), Limit: OpenMax})
	for _, row := range all {
		if row.Request.Kind == request.Revert && row.Request.Reverts == r.Reverts {
			open = append(open, row)
		}
	}
	return open, err
}

// Needed ends a rollback of what was rolled back otherwise meanwhile.
func (l *Ledger) Needed(ctx context.Context, row change.Row) error {
	if row.Request.Kind != request.Revert {
		return nil
	}
	undone, err := l.Row(ctx, row.Request.Reverts)
	if err != nil || undone.State != change.RolledBack {
		return err
	}
	return overtakenBy(undone)
}

// overtakenBy is why a rollback of undone has nothing left to do.
func overtakenBy(undone change.Row) *Withdrawn {
	w := &Withdrawn{By: audit.Host, Reason: fmt.Sprintf("%s was rolled back already", undone.ID), next: "sallyport change show " + string(undone.ID)}
	if undone.RevertedBy != "" {
		w.Reason, w.next = fmt.Sprintf("%s was rolled back already, by %s", undone.ID, undone.RevertedBy), "sallyport change show "+string(undone.RevertedBy)
	}
	return w
}

// MarkReverted tells the change that was undone, in the transaction that closes the undoing. If another undoing
// was first, that one stays the one that did it.
func (l *Ledger) MarkReverted(ctx context.Context, tx store.Tx, by *change.Row, undoing landing.Landing) error {
	if by.Request.Kind != request.Revert {
		return nil
	}
	undone, err := tx.Change(ctx, by.Request.Reverts)
	if err != nil {
		return err
	}
	if undone.State == change.RolledBack {
		by.Reason = strings.TrimPrefix(by.Reason+"; "+overtakenBy(undone).Reason, "; ")
		return tx.MoveChange(ctx, by.State, *by)
	}
	undone.RevertedBy = by.ID
	return l.Move(ctx, tx, &undone, Move{
		Event: change.Reverted, By: audit.Host, Verb: "rolled back", Subject: string(by.ID), Reason: by.Request.Reason,
		Digests: map[string]string{"commit": string(undoing.NewCommit), "tree": string(undoing.NewTree)},
	})
}

// overtake ends the other open rollbacks of what a rollback has undone. One that a step holds ends with that step; one
// that has landed itself, and whose old version is to answer yet, goes on.
func (l *Ledger) overtake(ctx context.Context, by change.Row) error {
	var ended []change.Row
	err := l.DB.InTx(ctx, func(tx store.Tx) error {
		ended = nil
		undone, err := tx.Change(ctx, by.Request.Reverts)
		if err != nil || undone.State != change.RolledBack {
			return err
		}
		open, err := Rollbacks(ctx, tx, by.Request)
		if err != nil {
			return err
		}
		for _, row := range open {
			if event, err := l.Withdrawal(ctx, tx, row); err != nil || event != change.Cancel || row.Holder != "" {
				continue
			}
			if err := l.Withdraw(ctx, tx, &row, change.Cancel, *overtakenBy(undone)); err != nil {
				return err
			}
			ended = append(ended, row)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, row := range ended {
		l.Moved(row)
	}
	return nil
}

// OpenMax bounds how many changes can have an agent at work in one home.
const OpenMax = 100_000
