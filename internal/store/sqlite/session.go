package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
)

// sessions are the runs of agents.
type sessions struct{ *queries }

// PutSession stores or replaces a session.
func (t sessions) PutSession(ctx context.Context, s session.Session) error {
	what := fmt.Sprintf("store session %q", s.ID)
	raw, err := encode(s)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "put-session", `INSERT INTO session (id, subject, attempt, started_at, doc) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, started_at = excluded.started_at, doc = excluded.doc
		WHERE subject = excluded.subject`, s.ID, s.Subject(), s.Attempt, ms(s.Started), raw)
	if err != nil {
		return ofSubject(what, s.Subject(), err)
	}
	if n == 0 {
		return problem.Errorf(problem.Conflict, "sallyport session show "+string(s.ID), "session %q belongs to something else", s.ID)
	}
	return nil
}

// Session returns one.
func (t sessions) Session(ctx context.Context, id id.Session) (session.Session, error) {
	one, ok, err := firstOf(docs[session.Session](ctx, t.queries, `SELECT doc FROM session WHERE id = ?`, id))
	if err == nil && !ok {
		return one, problem.Errorf(problem.NotFound, "sallyport change list", "there is no session %q in this home", id)
	}
	return one, doing(err, "read session %q", id)
}

// Sessions returns a subject's, oldest first.
func (t sessions) Sessions(ctx context.Context, subject id.Subject) ([]session.Session, error) {
	all, err := docs[session.Session](ctx, t.queries, `SELECT doc FROM session WHERE subject = ? ORDER BY attempt, started_at, rowid`, subject)
	return all, doing(err, "list sessions of %q", subject)
}
