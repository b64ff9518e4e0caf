package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
)

// landings are the journal of landings.
type landings struct{ *queries }

// AddLanding stores a journal row. Errors: landing.ErrBusy if another landing of the
// same repository is open; problem.Refused for a path that is not UTF-8.
func (t landings) AddLanding(ctx context.Context, l landing.Landing) error {
	what := fmt.Sprintf("store landing %q", l.ID)
	if l.State != landing.Journaled {
		return problem.Errorf(problem.Internal, "", "%s: it begins as %q", what, l.State)
	}
	if err := exact(what, l); err != nil {
		return err
	}
	raw, err := encode(l)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "journal", `INSERT INTO landing (id, change, common_dir, state, reason, doc)
		SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS (SELECT 1 FROM landing WHERE common_dir = ?3 AND state = 'journaled')`,
		l.ID, l.Change, l.Project.CommonDir, l.State, l.Reason, raw)
	if err != nil {
		return ofChange(what, l.Change, err)
	}
	if n == 0 {
		return fmt.Errorf("%s in %q: %w", what, l.Project.CommonDir, landing.ErrBusy)
	}
	return nil
}

// CloseLanding moves an open row; what the journal says was to be done stays. Errors:
// change.ErrMoved if the row is not open.
func (t landings) CloseLanding(ctx context.Context, l landing.Landing) error {
	what := fmt.Sprintf("close landing %q as %s", l.ID, l.State)
	if l.State == landing.Journaled {
		return problem.Errorf(problem.Internal, "", "%s: a landing does not end in that state", what)
	}
	n, err := t.write(ctx, "close-landing", `UPDATE landing SET state = ?, ended_at = ?, reason = ?
		WHERE id = ? AND state IN ('journaled', 'stranded')`, l.State, whenever(l.Ended), l.Reason, l.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n == 0 {
		return problem.Case(change.ErrMoved, "sallyport change show "+string(l.Change), "%s: the landing is not open any more", what)
	}
	return nil
}

// OpenLandings returns the rows that are not at an end, oldest first.
func (t landings) OpenLandings(ctx context.Context) ([]landing.Landing, error) {
	all, err := t.list(ctx, `WHERE state IN ('journaled', 'stranded') AND ended_at IS NULL ORDER BY seq`)
	return all, doing(err, "list open landings")
}

// LandingOf returns the change's latest row.
func (t landings) LandingOf(ctx context.Context, change id.Change) (landing.Landing, bool, error) {
	one, ok, err := firstOf(t.list(ctx, `WHERE change = ? ORDER BY seq DESC LIMIT 1`, change))
	return one, ok, doing(err, "read the landing of %q", change)
}

// Landing returns one row by its id.
func (t landings) Landing(ctx context.Context, l id.Landing) (landing.Landing, bool, error) {
	one, ok, err := firstOf(t.list(ctx, `WHERE id = ?`, l))
	return one, ok, doing(err, "read landing %q", l)
}

func (t landings) list(ctx context.Context, where string, args ...any) ([]landing.Landing, error) {
	return rows(ctx, t.queries, func(row scanner, l *landing.Landing) error {
		var raw, reason string
		var state landing.State
		var ended sql.NullInt64
		if err := row.Scan(&raw, &state, &ended, &reason); err != nil {
			return err
		}
		var err error
		*l, err = decode[landing.Landing](raw)
		l.State, l.Reason, l.Ended = state, reason, maybe(ended)
		return err
	}, `SELECT doc, state, ended_at, reason FROM landing `+where, args...)
}
