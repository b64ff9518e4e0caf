package approval

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/path/proposal"
)

// Swap is the kind of an approval to land a change.
const Swap = "swap"

// Open asks for a decision on exactly p. What was asked about the change before and is
// still open becomes void: nobody can answer a card that is no longer true. Asking about
// the same digest twice returns the approval that is open already.
func Open(ctx context.Context, tx Tx, fresh id.Approval, p proposal.Proposal, at time.Time) (Approval, error) {
	if err := proposal.Verify(p); err != nil {
		return Approval{}, fmt.Errorf("ask about %s: %w", p.Change, err)
	}
	old, open, err := tx.PendingApproval(ctx, p.Change)
	if err != nil {
		return Approval{}, err
	}
	if open && old.Digest == p.Digest && old.Proposal == p.Number {
		return old, nil
	}
	if open {
		if err := void(ctx, tx, old, string(fresh)+" replaced this card", at); err != nil {
			return Approval{}, err
		}
	}
	a := Approval{ID: fresh, Change: p.Change, Kind: Swap, Proposal: p.Number, Digest: p.Digest, Asked: at, Decision: Pending}
	if err := tx.AddApproval(ctx, a); err != nil {
		return Approval{}, fmt.Errorf("ask about %s: %w", p.Change, err)
	}
	return a, nil
}

// Withdraw makes what is open about a change void, because the change ended otherwise;
// nothing happens if nothing is open.
func Withdraw(ctx context.Context, tx Tx, change id.Change, at time.Time) error {
	a, open, err := tx.PendingApproval(ctx, change)
	if err != nil {
		return err
	}
	if !open {
		return nil
	}
	return void(ctx, tx, a, "the change ended", at)
}

func void(ctx context.Context, tx Tx, a Approval, why string, at time.Time) error {
	host := audit.Host
	a.Decision, a.By, a.At, a.Reason = Void, &host, &at, why
	if err := tx.Decide(ctx, a); err != nil {
		return fmt.Errorf("void %s: %w", a.ID, err)
	}
	return nil
}
