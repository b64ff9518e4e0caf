package ledger

import (
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Row returns a change as it is stored now.
func (l *Ledger) Row(ctx context.Context, of id.Change) (change.Row, error) {
	return store.Look(ctx, l.DB, store.Tx.Change, of)
}

// List returns changes, newest first.
func (l *Ledger) List(ctx context.Context, f change.Filter) ([]change.Row, error) {
	return store.Look(ctx, l.DB, store.Tx.Changes, f)
}

// LookedMax is how many changes are looked through for one of a kind.
const LookedMax = 1000

// LastSwap is the change that a group's agent asked for last; false if it never did.
func LastSwap(ctx context.Context, tx store.Tx, of group.Folder) (row change.Row, found bool, err error) {
	all, err := tx.Changes(ctx, change.Filter{Swaps: string(of), Limit: LookedMax})
	for _, row := range all {
		if row.Request.OfAgent() {
			return row, true, err
		}
	}
	return row, false, err
}

// Checkpoints returns a change's, oldest first.
func (l *Ledger) Checkpoints(ctx context.Context, change id.Change) (out []checkpoint.Checkpoint, err error) {
	err = l.DB.Read(ctx, func(tx store.Tx) error {
		if _, err := tx.Change(ctx, change); err != nil {
			return err
		}
		out, err = tx.Checkpoints(ctx, change)
		return err
	})
	return out, err
}

// Checkpoint returns one by its id.
func (l *Ledger) Checkpoint(ctx context.Context, ref id.Checkpoint) (checkpoint.Checkpoint, error) {
	return store.Look(ctx, l.DB, store.Tx.Checkpoint, ref)
}

// Approvals returns newest first; pending only, or all; limit 0 = 100.
func (l *Ledger) Approvals(ctx context.Context, pendingOnly bool, limit int) (out []approval.Approval, err error) {
	err = l.DB.Read(ctx, func(tx store.Tx) error {
		out, err = tx.Approvals(ctx, pendingOnly, limit)
		return err
	})
	return out, err
}

// Requested returns what was asked for with changes, as far as they are still known.
func (l *Ledger) Requested(ctx context.Context, of []id.Change) (map[id.Change]request.Request, error) {
	out := map[id.Change]request.Request{}
	err := l.DB.Read(ctx, func(tx store.Tx) error {
		for _, c := range of {
			if _, known := out[c]; known {
				continue
			}
			row, err := tx.Change(ctx, c)
			if problem.KindOf(err) == problem.NotFound {
				continue
			}
			if err != nil {
				return err
			}
			out[c] = row.Request
		}
		return nil
	})
	return out, err
}

// Audit returns entries after a sequence number, oldest first; change "" = all.
func (l *Ledger) Audit(ctx context.Context, change id.Change, after int64, limit int) (out []audit.Entry, err error) {
	err = l.DB.Read(ctx, func(tx store.Tx) error {
		if out, err = tx.Entries(ctx, string(change), after, limit); err == nil && len(out) == 0 && change != "" {
			_, err = tx.Change(ctx, change) // nothing happened, or there is no such change
		}
		return err
	})
	return out, err
}

// AuditVerify reads the whole audit log and reports what is not as it was written.
func (l *Ledger) AuditVerify(ctx context.Context, expected *audit.Mark) (audit.Report, error) {
	return l.DB.VerifyAudit(ctx, expected)
}

// Sessions returns a change's, oldest first.
func (l *Ledger) Sessions(ctx context.Context, change id.Change) ([]session.Session, error) {
	return store.Look(ctx, l.DB, store.Tx.Sessions, change.Subject())
}

// Proposal returns a change's current proposal, nil if it has none.
func (l *Ledger) Proposal(ctx context.Context, change id.Change) (*proposal.Proposal, error) {
	var found *proposal.Proposal
	err := l.DB.Read(ctx, func(tx store.Tx) error {
		p, ok, err := tx.Proposal(ctx, change)
		if ok {
			found = &p
		}
		return err
	})
	return found, err
}

// Superseded is the proposal of a change that is being made anew on another base; nil of any other.
func (l *Ledger) Superseded(ctx context.Context, row change.Row) (*proposal.Proposal, error) {
	p, err := l.Proposal(ctx, row.ID)
	if err != nil || p == nil || row.Base == "" || p.Base == row.Onto() {
		return nil, err
	}
	return p, nil
}

// Landing returns a change's latest journal row.
func (l *Ledger) Landing(ctx context.Context, change id.Change) (latest landing.Landing, ok bool, err error) {
	err = l.DB.Read(ctx, func(tx store.Tx) error {
		latest, ok, err = tx.LandingOf(ctx, change)
		return err
	})
	return latest, ok, err
}

// LandingNamed returns the journal row that another row names.
func LandingNamed(ctx context.Context, tx store.Tx, name id.Landing) (landing.Landing, error) {
	l, ok, err := tx.Landing(ctx, name)
	if err == nil && !ok {
		err = fmt.Errorf("there is no landing %s", name)
	}
	return l, err
}
