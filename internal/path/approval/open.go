package approval

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/path/proposal"
	"sallyport/internal/who/question"
)

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
	q := asking(fresh, p, at)
	a := Approval{ID: fresh, Question: q.ID, Change: p.Change, Kind: q.Kind, Proposal: p.Number, Digest: p.Digest, Asked: at, Decision: Pending}
	if err := question.Put(ctx, tx, q); err != nil {
		return Approval{}, fmt.Errorf("ask about %s: %w", p.Change, err)
	}
	if err := tx.AddApproval(ctx, a); err != nil {
		return Approval{}, fmt.Errorf("ask about %s: %w", p.Change, err)
	}
	return a, nil
}

// asking is the question whether p may land. The card is the proposal's, which the digest names.
func asking(fresh id.Approval, p proposal.Proposal, at time.Time) question.Question {
	may := options
	if !p.Card.Reworks {
		may = options[:2]
	}
	return question.Question{
		ID: id.Question("qst-" + strings.TrimPrefix(string(fresh), "apr-")), Kind: question.Swap, Subject: id.Subject(p.Change),
		Card: question.Card{Title: strings.ToValidUTF8(p.Card.Title, "\uFFFD")}, Digest: string(p.Digest), Options: may, Need: max(1, p.Card.People), Asked: at,
	}
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
	if err := question.Withdraw(ctx, tx, a.Question, why, at); err != nil {
		return fmt.Errorf("void %s: %w", a.ID, err)
	}
	return nil
}
