package supervise

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// waitForBudget blocks a change whose agent could ask its model nothing: it goes on when somebody raises the budget and resumes it.
func (ss *Supervisors) waitForBudget(ctx context.Context, row change.Row, because error) error {
	_, err := ss.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return ss.Move(ctx, tx, row, ledger.Move{Event: change.Block, By: audit.Host, Blocked: change.BudgetUsedUp, Because: overspent(row.ID, because)})
	})
	if err != nil {
		return fmt.Errorf("wait for a budget: %w", err)
	}
	return nil
}

// waitForKey blocks a change whose agent cannot work without its key: it goes on when somebody hands it over.
func (ss *Supervisors) waitForKey(ctx context.Context, w work.Work, because error) error {
	row, err := ss.InTx(ctx, w.Row, func(tx store.Tx, row *change.Row) error {
		return ss.Move(ctx, tx, row, ledger.Move{Event: change.Block, By: audit.Host, Blocked: change.CredentialMissing,
			Because: problem.Errorf(problem.Unavailable, "", "%s waits for the key of its agent's model: %w", row.ID, because)})
	})
	if err != nil {
		return fmt.Errorf("wait for a key: %w", err)
	}
	if _, err := ss.Runtime.Outfits.Equip(w.Subject(), work.Task(row.Request)); err != nil {
		return nil // Resume is asked for with the key, and looks whether it waits
	}

	// The key came after the agent had looked for it and before the change stood as waiting: nobody else knows that it may go on.
	_, err = ss.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return ss.Move(ctx, tx, row, ledger.Move{Event: change.Resume, By: audit.Host})
	})
	if errors.Is(err, change.ErrMoved) {
		return nil // whoever gave the key saw it wait
	}
	return err
}
