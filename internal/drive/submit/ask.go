package submit

import (
	"cmp"
	"context"
	"errors"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
	"sallyport/internal/store"
)

// Ask computes the card and opens an approval. What changes the host is rehearsed first, unless it was. Nothing of it goes to the person's
// repository before it lands.
func (s *Submissions) Ask(ctx context.Context, row change.Row, o grounds.Offer, results []proposal.CheckResult, e change.Event) error {
	why, err := s.rehearse(ctx, row, &o, &results)
	if err = cmp.Or(why, err); err != nil {
		return err
	}
	p, err := s.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	_, err = s.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return s.open(ctx, tx, row, p, e) })
	return err
}

// open stores a proposal with its approval and moves the change to wait for it. What was
// approved beforehand by flag goes on to landing in the same transaction, and is audited as that.
func (s *Submissions) open(ctx context.Context, tx store.Tx, row *change.Row, p proposal.Proposal, e change.Event) error {
	asked, err := s.Origin.OpenApproval(ctx, tx, *row, p)
	if err != nil {
		return err
	}
	if err := s.RecordPassedChecks(ctx, tx, *row, p.Card.Checks, "passed a check", p.Digests(), p.At); err != nil {
		return err
	}
	m := ledger.Move{Event: e, By: audit.Host, Subject: string(asked.ID), Reason: p.Card.Note, Next: "sallyport approve " +
		string(row.ID), Digests: p.Digests()}
	if err := s.Move(ctx, tx, row, m); err != nil {
		return err
	}
	if row.Request.Approve != request.Yes || p.Number > 1 || p.Card.MarksWord || p.Card.Typed != "" ||
		p.Card.Coded() { // said before anybody saw what it would cover
		return nil
	}
	err = s.Answers.Record(ctx, tx, row, asked.ID, p.Digest, row.Request.By, approve.Words{Via: approval.ViaFlag})
	if errors.Is(err, approval.ErrOwn) || errors.Is(err, config.ErrUnloaded) { // then another is waited for, or a policy that loads
		return nil
	}
	return err
}

// OfferAgain asks the person about an earlier checkpoint in the place of the present proposal; what
// was asked before is void (SECURITY rule 3).
func (s *Submissions) OfferAgain(ctx context.Context, row change.Row, cp checkpoint.Checkpoint, by audit.Actor) error {
	if cp.Status != checkpoint.Valid {
		return problem.Errorf(problem.Refused, "sallyport checkpoint show "+string(cp.ID), "%s is %s; only a valid checkpoint can be offered", cp.ID, cp.Status)
	}
	if r := row.Request; r.Kind == request.Swap && (row.Swap == nil || row.Swap.Checkpoint != cp.ID) { // its summaries and its commit are of another tree
		return problem.Errorf(problem.Refused, "sallyport chat "+r.Group,
			"%s is not what %s has proposed: refuse %s, and ask for it anew in a conversation of the group %s", cp.ID, r.Dev, row.ID, r.Group)
	}
	row.Chosen = cp.ID
	o, err := s.Offer(ctx, row, git.OID(row.Base))
	if err != nil {
		return err
	}
	if len(o.Edits) == 0 {
		return problem.Errorf(problem.Refused, "sallyport change cancel "+string(row.ID), "%s changes nothing, so there is nothing to land", cp.ID)
	}
	if why := o.Refused(row); why != nil {
		return why
	}
	results, why, err := s.Checks.Check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return why
	}
	if why, err = s.rehearse(ctx, row, &o, &results); cmp.Or(why, err) != nil {
		return cmp.Or(why, err)
	}
	p, err := s.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	_, err = s.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		if err := approval.Withdraw(ctx, tx, row.ID, ledger.Now()); err != nil {
			return err
		}
		row.Chosen, row.Rollbacks = cp.ID, row.Rollbacks+1
		if err := s.Append(ctx, tx, row, ledger.Move{By: by, Subject: string(cp.ID),
			Digests: map[string]string{"commit": string(cp.Commit), "tree": string(cp.Tree)}}, "restored", ledger.Now()); err != nil {
			return err
		}
		return s.open(ctx, tx, row, p, change.Asked)
	})
	return err
}
