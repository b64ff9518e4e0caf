package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
)

// approvals are what people are asked and what they answered.
type approvals struct{ *queries }

const approvalColumns = `id, change, kind, proposal, digest, asked_at, decision, actor, at, via, reason, message, unsigned`

func scanApproval(row scanner) (approval.Approval, error) {
	var a approval.Approval
	var actor sql.NullString
	var asked, at sql.NullInt64
	err := row.Scan(&a.ID, &a.Change, &a.Kind, &a.Proposal, &a.Digest, &asked, &a.Decision, &actor, &at, &a.Via, &a.Reason, &a.Message, &a.Unsigned)
	if err != nil {
		return a, err
	}
	a.Asked = clock(asked)
	if at.Valid {
		t := clock(at)
		a.At = &t
	}
	if actor.Valid {
		by, err := decode[audit.Actor](actor.String)
		if err != nil {
			return a, err
		}
		a.By = &by
	}
	return a, nil
}

// said returns the columns of a decision.
func said(a approval.Approval) (by sql.NullString, at sql.NullInt64, err error) {
	if a.By != nil {
		by.Valid = true
		if by.String, err = encode(a.By); err != nil {
			return by, at, err
		}
	}
	if a.At != nil {
		at = ms(*a.At)
	}
	return by, at, nil
}

// AddApproval stores one. Errors: problem.Conflict if the change has one that is open;
// problem.NotFound if there is no such proposal.
func (t approvals) AddApproval(ctx context.Context, a approval.Approval) error {
	what := fmt.Sprintf("store approval %q", a.ID)
	by, at, err := said(a)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = t.write(ctx, "add-approval", `INSERT INTO approval (`+approvalColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.ID, a.Change, a.Kind, a.Proposal, a.Digest, ms(a.Asked), a.Decision, by, at, a.Via, a.Reason, a.Message, a.Unsigned)
	switch {
	case duplicate(err):
		return problem.Errorf(problem.Conflict, "sallyport approval list", "%s: a person has been asked about change %q already: %w", what, a.Change, err)
	case orphan(err):
		return problem.Errorf(problem.NotFound, "sallyport change list", "%s: there is no proposal %d of a change %q", what, a.Proposal, a.Change)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Approval returns one.
func (t approvals) Approval(ctx context.Context, id id.Approval) (approval.Approval, error) {
	all, err := t.list(ctx, `SELECT `+approvalColumns+` FROM approval WHERE id = ?`, id)
	if err != nil {
		return approval.Approval{}, fmt.Errorf("read approval %q: %w", id, err)
	}
	if len(all) == 0 {
		return approval.Approval{}, noApproval(id)
	}
	return all[0], nil
}

func noApproval(id id.Approval) error {
	return problem.Errorf(problem.NotFound, "sallyport approval list", "there is no approval %q in this home", id)
}

// PendingApproval returns the change's open one.
func (t approvals) PendingApproval(ctx context.Context, change id.Change) (approval.Approval, bool, error) {
	all, err := t.list(ctx, `SELECT `+approvalColumns+` FROM approval WHERE change = ? AND decision = 'pending'`, change)
	if err != nil || len(all) == 0 {
		if err != nil {
			err = fmt.Errorf("read the open approval of %q: %w", change, err)
		}
		return approval.Approval{}, false, err
	}
	return all[0], true, nil
}

// LatestApproval returns the change's newest.
func (t approvals) LatestApproval(ctx context.Context, change id.Change) (approval.Approval, error) {
	all, err := t.list(ctx, `SELECT `+approvalColumns+` FROM approval WHERE change = ? ORDER BY seq DESC LIMIT 1`, change)
	if err != nil {
		return approval.Approval{}, fmt.Errorf("read the latest approval of %q: %w", change, err)
	}
	if len(all) == 0 {
		return approval.Approval{}, problem.Errorf(problem.NotFound, "sallyport change show "+string(change),
			"change %q has not asked for an approval yet", change)
	}
	return all[0], nil
}

// Approvals returns newest first; limit 0 = 100.
func (t approvals) Approvals(ctx context.Context, pendingOnly bool, limit int) ([]approval.Approval, error) {
	query := `SELECT ` + approvalColumns + ` FROM approval`
	if pendingOnly {
		query += ` WHERE decision = 'pending'`
	}
	if limit <= 0 {
		limit = 100
	}
	all, err := t.list(ctx, query+` ORDER BY seq DESC LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("list approvals: %w", err)
	}
	return all, nil
}

func (t approvals) list(ctx context.Context, query string, args ...any) ([]approval.Approval, error) {
	var all []approval.Approval
	err := t.each(ctx, func(row scanner) error {
		a, err := scanApproval(row)
		all = append(all, a)
		return err
	}, query, args...)
	return all, err
}

// Decide writes the answer once. What it answers stays as it was asked; an answer to
// another digest is proposal.ErrSuperseded.
func (t approvals) Decide(ctx context.Context, a approval.Approval) error {
	what := fmt.Sprintf("decide approval %q", a.ID)
	if a.Decision == approval.Pending {
		return problem.Errorf(problem.Internal, "", "%s: %q is no decision", what, a.Decision)
	}
	by, at, err := said(a)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "decide", `UPDATE approval SET decision = ?, actor = ?, at = ?, via = ?, reason = ?, message = ?, unsigned = ?
		WHERE id = ? AND digest = ? AND decision = 'pending'`, a.Decision, by, at, a.Via, a.Reason, a.Message, a.Unsigned, a.ID, a.Digest)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n == 1 {
		return nil
	}
	now, err := t.Approval(ctx, a.ID)
	if err != nil {
		return err
	}
	if now.Decision == approval.Pending {
		return fmt.Errorf("%s, which is bound to %.12s, not %.12s: %w", what, now.Digest, a.Digest, proposal.ErrSuperseded)
	}
	return problem.Case(approval.ErrDecided, "sallyport approval show "+string(a.ID),
		"the approval %q is %s already", a.ID, now.Decision)
}
