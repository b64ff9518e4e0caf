package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/path/session"
)

// asked are the lines of what a subject's programs asked of the network.
type asked struct{ *queries }

// AddAsked counts what a subject's programs asked of their way out.
func (t asked) AddAsked(ctx context.Context, subject id.Subject, asked []session.Asked) error {
	what := fmt.Sprintf("count what %q asked of the network", subject)
	if err := exact(what, asked); err != nil {
		return err
	}
	for _, a := range asked {
		n, err := t.countAsked(ctx, subject, a)
		if err != nil {
			return ofSubject(what, subject, err)
		}
		if n > 0 {
			continue
		}
		var lines int
		if _, err := t.one(ctx, `SELECT count(*) FROM asked WHERE subject = ?`, []any{subject}, &lines); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if lines >= session.AskedMax {
			a = a.Rest()
			if n, err = t.countAsked(ctx, subject, a); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if n > 0 {
				continue
			}
		}
		_, err = t.write(ctx, "add-asked", `INSERT INTO asked (subject, host, port, method, route, verdict, why, count, first_at, last_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, subject, a.Host, a.Port, a.Method, a.Route, a.Verdict, a.Why, a.Count, ms(a.First), ms(a.Last))
		if err != nil {
			return ofSubject(what, subject, err)
		}
	}
	return nil
}

// countAsked adds to the line of a's kind; 0 if there is none.
func (t asked) countAsked(ctx context.Context, subject id.Subject, a session.Asked) (int64, error) {
	return t.write(ctx, "count-asked", `UPDATE asked SET count = count + ?, first_at = min(first_at, ?), last_at = max(last_at, ?)
		WHERE subject = ? AND host = ? AND port = ? AND method = ? AND route = ? AND verdict = ? AND why = ?`,
		a.Count, ms(a.First), ms(a.Last), subject, a.Host, a.Port, a.Method, a.Route, a.Verdict, a.Why)
}

// Asked returns a subject's lines.
func (t asked) Asked(ctx context.Context, subject id.Subject) ([]session.Asked, error) {
	all, err := rows(ctx, t.queries, func(row scanner, a *session.Asked) error {
		var first, last sql.NullInt64
		err := row.Scan(&a.Host, &a.Port, &a.Method, &a.Route, &a.Verdict, &a.Why, &a.Count, &first, &last)
		a.First, a.Last = clock(first), clock(last)
		return err
	}, `SELECT host, port, method, route, verdict, why, count, first_at, last_at FROM asked WHERE subject = ? ORDER BY seq`, subject)
	return all, doing(err, "read what %q asked of the network", subject)
}
