package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/rule/budget"
)

// usage counts what models used.
type usage struct{ *queries }

// spentSince is asked before each request to a model.
const spentSince = `SELECT coalesce(sum(input + cached + output), 0), coalesce(sum(cost), 0) FROM usage WHERE minute >= ?`

const spentOf = `SELECT coalesce(sum(input + cached + output), 0), coalesce(sum(cost), 0) FROM usage WHERE subject = ?`

// AddUse counts a use in its row.
func (t usage) AddUse(ctx context.Context, u budget.Use) error {
	what := fmt.Sprintf("count what the model of %q used", u.Subject)
	if err := exact(what, u); err != nil {
		return err
	}
	u = u.Bounded()
	subject := sql.NullString{String: string(u.Subject), Valid: u.Subject != ""}
	n, err := t.write(ctx, "count-usage", `UPDATE usage SET requests = requests + ?, estimated = estimated + ?, unpriced = unpriced + ?,
			input = input + ?, cached = cached + ?, output = output + ?, cost = cost + ?
		WHERE subject IS ? AND session = ? AND model = ? AND minute = ?`,
		u.Requests, u.Estimated, u.Unpriced, u.Input, u.Cached, u.Output, int64(u.Cost), subject, u.Session, u.Model, ms(u.Minute))
	if err != nil {
		return ofSubject(what, u.Subject, err)
	}
	if n > 0 {
		return nil
	}
	_, err = t.write(ctx, "add-usage", `INSERT INTO usage (subject, session, model, minute, requests, estimated, unpriced, input, cached, output, cost)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		subject, u.Session, u.Model, ms(u.Minute), u.Requests, u.Estimated, u.Unpriced, u.Input, u.Cached, u.Output, int64(u.Cost))
	if err != nil {
		return ofSubject(what, u.Subject, err)
	}
	return nil
}

// Uses returns what a subject used, by model.
func (t usage) Uses(ctx context.Context, subject id.Subject) (all []budget.Use, err error) {
	err = t.each(ctx, func(row scanner) error {
		u := budget.Use{Subject: subject}
		err := row.Scan(&u.Model, &u.Requests, &u.Estimated, &u.Unpriced, &u.Input, &u.Cached, &u.Output, &u.Cost)
		all = append(all, u)
		return err
	}, `SELECT model, sum(requests), sum(estimated), sum(unpriced), sum(input), sum(cached), sum(output), sum(cost)
		FROM usage WHERE subject = ? GROUP BY model ORDER BY min(seq)`, subject)
	return all, doing(err, "read what the models of %q used", subject)
}

// SpentOf sums what a subject used.
func (t usage) SpentOf(ctx context.Context, subject id.Subject) (budget.Spent, error) {
	var s budget.Spent
	if _, err := t.one(ctx, spentOf, []any{subject}, &s.Tokens, &s.Cost); err != nil {
		return budget.Spent{}, fmt.Errorf("sum what the models of %q used: %w", subject, err)
	}
	return s, nil
}

// SpentOfGroup sums what all chats of a group, and all changes of what it runs, used from a minute on.
func (t usage) SpentOfGroup(ctx context.Context, group string, minute time.Time) (budget.Spent, error) {
	var s budget.Spent
	_, err := t.one(ctx, `SELECT coalesce(sum(input + cached + output), 0), coalesce(sum(cost), 0) FROM usage
		WHERE minute >= ? AND subject IN (SELECT id FROM chat WHERE folder = ? UNION ALL SELECT id FROM change WHERE swaps = ?)`,
		[]any{ms(minute), group, group}, &s.Tokens, &s.Cost)
	if err != nil {
		return budget.Spent{}, fmt.Errorf("sum what the group of %q used: %w", group, err)
	}
	return s, nil
}

// SpentSince sums what all used from a minute on.
func (t usage) SpentSince(ctx context.Context, minute time.Time) (budget.Spent, error) {
	var s budget.Spent
	if _, err := t.one(ctx, spentSince, []any{ms(minute)}, &s.Tokens, &s.Cost); err != nil {
		return budget.Spent{}, fmt.Errorf("sum what models used: %w", err)
	}
	return s, nil
}
