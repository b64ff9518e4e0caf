package redo

import (
	"context"
	"fmt"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
)

// reapply puts the edits of a proposal on another commit, in the host's repository.
func (rs *Redos) reapply(ctx context.Context, row change.Row, p proposal.Proposal, onto git.OID) (proposal.Reapplied, error) {
	host, err := rs.Workspaces.EnsureRepository(ctx, row.Request.Project, onto)
	if err != nil {
		return proposal.Reapplied{}, err
	}
	who := rs.Author
	who.At = row.Created
	return proposal.Reapply(ctx, proposal.Reapplying{
		Host: host, Change: row.ID, Branch: row.Request.Branch, Edits: p.Edits, Onto: onto, Author: who,
	})
}

// Words say to an agent what has become of its files; "" if nothing has.
func (rs *Redos) Words(ctx context.Context, row change.Row) (string, error) {
	p, err := rs.Superseded(ctx, row)
	if err != nil {
		return "", err
	}
	if p == nil { // on the same base: a person wants something else in it, or a check or a rule has refused it
		if p, err = rs.Proposal(ctx, row.ID); err != nil || p == nil {
			return "", err
		}
		words, err := rs.wanted(ctx, row)
		if words += redWords(*p); words == "" && row.Reason != "" {
			words = fmt.Sprintf("What you proposed was refused: %s. Mend that, commit it, and propose it again by request_swap.\n", row.Reason)
		}
		return words, err
	}
	r, err := rs.reapply(ctx, row, *p, git.OID(row.Base))
	if err != nil {
		return "", err
	}
	words := fmt.Sprintf("%s has moved since you began. Your files now stand on it as it is today, commit %.12s. %s\n",
		row.Request.Branch, row.Base, r.Words(row.Request.Branch))
	if redFor(*p, git.OID(row.Base)) {
		words += redWords(*p)
	}
	return words, nil
}

// wanted is what a person wants different in what was proposed; "" if nobody has said so since.
func (rs *Redos) wanted(ctx context.Context, row change.Row) (words string, err error) {
	err = rs.DB.Read(ctx, func(tx store.Tx) error {
		last, err := tx.LatestApproval(ctx, row.ID)
		if problem.KindOf(err) == problem.NotFound {
			return nil
		}
		if err == nil && last.Decision == approval.Reworked && last.By != nil {
			words = fmt.Sprintf("%s has read what you proposed, and wants something else in it before it lands:\n\n%s\n\nChange that, commit it, and propose it again by request_swap.\n", last.By.Name, last.Reason)
		}
		return err
	})
	return words, err
}

// redWords say which check failed.
func redWords(p proposal.Proposal) string {
	for _, r := range p.Card.Checks {
		if !r.OK {
			return fmt.Sprintf("The check %q failed there: %s. The end of what it printed:\n\n%s\n", r.Command, r.Why, r.Tail)
		}
	}
	return ""
}
