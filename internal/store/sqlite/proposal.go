package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/path/proposal"
)

// proposals are what changes offered.
type proposals struct{ *queries }

// AddProposal stores p as the change's current one. Errors: proposal.ErrSuperseded if its
// number is not the next.
func (t proposals) AddProposal(ctx context.Context, p proposal.Proposal) error {
	what := fmt.Sprintf("store proposal %d of %q", p.Number, p.Change)
	if err := exact(what, p.Edits); err != nil {
		return err
	}
	raw, err := encode(p)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "add-proposal", `INSERT INTO proposal (change, number, digest, doc)
		SELECT ?1, ?2, ?3, ?4 WHERE ?2 = (SELECT coalesce(max(number), 0) + 1 FROM proposal WHERE change = ?1)`,
		p.Change, p.Number, p.Digest, raw)
	if err != nil {
		return ofChange(what, p.Change, err)
	}
	if n == 0 {
		return fmt.Errorf("%s, which is not the next: %w", what, proposal.ErrSuperseded)
	}
	return nil
}

// Proposal returns a change's current one.
func (t proposals) Proposal(ctx context.Context, change id.Change) (proposal.Proposal, bool, error) {
	one, ok, err := firstOf(docs[proposal.Proposal](ctx, t.queries, `SELECT doc FROM proposal WHERE change = ? ORDER BY number DESC LIMIT 1`, change))
	return one, ok, doing(err, "read the proposal of %q", change)
}
