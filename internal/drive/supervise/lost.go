package supervise

import (
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

// EndLost ends the session rows that a killed daemon left open: a daemon's sandboxes die with
// it. What they left in their workspaces is salvaged when the change goes on.
func (ss *Supervisors) EndLost(ctx context.Context) error {
	rows, err := ss.List(ctx, change.Filter{States: []change.State{change.Working, change.Paused, change.Blocked}, Limit: ledger.OpenMax})
	if err != nil {
		return err
	}
	for _, row := range rows {
		all, err := ss.Sessions(ctx, row.ID)
		if err != nil {
			return err
		}
		for _, s := range all {
			if err := ss.interrupt(ctx, row, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// interrupt gives a session whose end nobody saw an end and a reason; one that has an end keeps it.
func (ss *Supervisors) interrupt(ctx context.Context, row change.Row, s session.Session) error {
	if s.Ended != nil {
		return nil
	}
	at := ledger.Now()
	s.Ended, s.Interrupted, s.Reason = &at, session.HostStopped, "interrupted: the daemon ended while the agent worked"
	err := ss.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutSession(ctx, s); err != nil {
			return err
		}
		row, err := tx.Change(ctx, row.ID)
		if err != nil {
			return err
		}
		row.Reason = string(s.ID) + " was " + s.Reason
		if row.State == change.Working { // of what stands for another reason that one stays
			if err := tx.MoveChange(ctx, row.State, row); err != nil {
				return err
			}
		}
		return ss.Append(ctx, tx, &row, ledger.Move{By: audit.Host, Subject: string(s.ID)}, "interrupted", at)
	})
	if err != nil {
		return fmt.Errorf("end session %s: %w", s.ID, err)
	}
	return nil
}
