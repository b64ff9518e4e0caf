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
	n, err := t.write(ctx, "put-session", `INSERT INTO session (id, change, attempt, started_at, doc) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET attempt = excluded.attempt, started_at = excluded.started_at, doc = excluded.doc
		WHERE change = excluded.change`, s.ID, s.Change, s.Attempt, ms(s.Started), raw)
	if err != nil {
		return ofChange(what, s.Change, err)
	}
	if n == 0 {
		return problem.Errorf(problem.Conflict, "sallyport change show "+string(s.Change), "session %q belongs to another change", s.ID)
	}
	return nil
}

// Session returns one.
func (t sessions) Session(ctx context.Context, id id.Session) (session.Session, error) {
	all, err := docs[session.Session](ctx, t.queries, `SELECT doc FROM session WHERE id = ?`, id)
	if err != nil {
		return session.Session{}, fmt.Errorf("read session %q: %w", id, err)
	}
	if len(all) == 0 {
		return session.Session{}, problem.Errorf(problem.NotFound, "sallyport change list", "there is no session %q in this home", id)
	}
	return all[0], nil
}

// Sessions returns a change's, oldest first.
func (t sessions) Sessions(ctx context.Context, change id.Change) ([]session.Session, error) {
	all, err := docs[session.Session](ctx, t.queries, `SELECT doc FROM session WHERE change = ? ORDER BY attempt, started_at, rowid`, change)
	if err != nil {
		return nil, fmt.Errorf("list sessions of %q: %w", change, err)
	}
	return all, nil
}
