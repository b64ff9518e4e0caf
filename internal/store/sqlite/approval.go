package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/who/question"
)

// approvals are what people are asked and what they answered.
type approvals struct{ *queries }

// approvalRows are approvals with their question and the answer that ended it.
const approvalRows = `SELECT approval.id, approval.change, approval.proposal, approval.message, approval.unsigned, ` + questionColumns + `
	FROM approval JOIN question AS q ON q.id = approval.question LEFT JOIN answer AS a ON a.seq = q.answer`

func scanApproval(row scanner, a *approval.Approval) error {
	var q question.Question
	err := scanQuestion(behind{row, []any{&a.ID, &a.Change, &a.Proposal, &a.Message, &a.Unsigned}}, &q)
	*a = a.Of(q)
	return err
}

// behind is a row that is read from behind its first columns, which have their places already.
type behind struct {
	scanner
	first []any
}

func (b behind) Scan(into ...any) error { return b.scanner.Scan(append(b.first, into...)...) }

// AddApproval stores one. Errors: problem.Conflict if there is one of this id or of this question; problem.NotFound if there is no such
// proposal, or no such question.
func (t approvals) AddApproval(ctx context.Context, a approval.Approval) error {
	what := fmt.Sprintf("store approval %q", a.ID)
	_, err := t.write(ctx, "add-approval", `INSERT INTO approval (id, question, change, proposal, message, unsigned) VALUES (?, ?, ?, ?, ?, ?)`,
		a.ID, a.Question, a.Change, a.Proposal, a.Message, a.Unsigned)
	switch {
	case duplicate(err):
		return problem.Errorf(problem.Conflict, "sallyport approval list", "%s: there is one already: %w", what, err)
	case orphan(err):
		return problem.Errorf(problem.NotFound, "sallyport change list", "%s: there is no proposal %d of a change %q", what, a.Proposal, a.Change)
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Approval returns one.
func (t approvals) Approval(ctx context.Context, id id.Approval) (approval.Approval, error) {
	one, ok, err := firstOf(t.list(ctx, approvalRows+` WHERE approval.id = ?`, id))
	if err == nil && !ok {
		return one, noApproval(id)
	}
	return one, doing(err, "read approval %q", id)
}

func noApproval(id id.Approval) error {
	return problem.Errorf(problem.NotFound, "sallyport approval list", "there is no approval %q in this home", id)
}

const pendingOf = ` WHERE q.subject = ? AND q.outcome IS NULL`

// PendingApproval returns the change's open one.
func (t approvals) PendingApproval(ctx context.Context, change id.Change) (approval.Approval, bool, error) {
	one, ok, err := firstOf(t.list(ctx, approvalRows+pendingOf, change))
	return one, ok, doing(err, "read the open approval of %q", change)
}

// LatestApproval returns the change's newest.
func (t approvals) LatestApproval(ctx context.Context, change id.Change) (approval.Approval, error) {
	one, ok, err := firstOf(t.list(ctx, approvalRows+` WHERE approval.change = ? ORDER BY approval.seq DESC LIMIT 1`, change))
	if err == nil && !ok {
		return one, problem.Errorf(problem.NotFound, "sallyport change show "+string(change),
			"change %q has not asked for an approval yet", change)
	}
	return one, doing(err, "read the latest approval of %q", change)
}

// Approvals returns newest first; limit 0 = 100.
func (t approvals) Approvals(ctx context.Context, pendingOnly bool, limit int) ([]approval.Approval, error) {
	query := approvalRows
	if pendingOnly {
		query += ` WHERE q.outcome IS NULL`
	}
	if limit <= 0 {
		limit = 100
	}
	all, err := t.list(ctx, query+` ORDER BY approval.seq DESC LIMIT +?`, limit)
	return all, doing(err, "list approvals")
}

func (t approvals) list(ctx context.Context, query string, args ...any) ([]approval.Approval, error) {
	return rows(ctx, t.queries, scanApproval, query, args...)
}

// NoteYes keeps what a yes says of the commit, while it can still be said.
func (t approvals) NoteYes(ctx context.Context, id id.Approval, message string, unsigned bool) error {
	what := fmt.Sprintf("note the yes to approval %q", id)
	n, err := t.write(ctx, "note-yes", `UPDATE approval SET message = ?, unsigned = ?
		WHERE id = ? AND question IN (SELECT id FROM question WHERE outcome IS NULL)`, message, unsigned, id)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n == 1 {
		return nil
	}
	now, err := t.Approval(ctx, id)
	if err != nil {
		return err
	}
	return problem.Case(approval.ErrDecided, "sallyport approval show "+string(id), "the approval %q is %s already", id, now.Decision)
}
