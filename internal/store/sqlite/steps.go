package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/session"
)

// ofChange adds the way out to an error about a row that hangs on a change.
func ofChange(what string, change id.Change, err error) error {
	if orphan(err) {
		return fmt.Errorf("%s: %w", what, noChange(change))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// PutSession stores or replaces a session.
func (t *tx) PutSession(ctx context.Context, s session.Session) error {
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
func (t *tx) Session(ctx context.Context, id id.Session) (session.Session, error) {
	all, err := docs[session.Session](ctx, t, `SELECT doc FROM session WHERE id = ?`, id)
	if err != nil {
		return session.Session{}, fmt.Errorf("read session %q: %w", id, err)
	}
	if len(all) == 0 {
		return session.Session{}, problem.Errorf(problem.NotFound, "sallyport change list", "there is no session %q in this home", id)
	}
	return all[0], nil
}

// Sessions returns a change's, oldest first.
func (t *tx) Sessions(ctx context.Context, change id.Change) ([]session.Session, error) {
	all, err := docs[session.Session](ctx, t, `SELECT doc FROM session WHERE change = ? ORDER BY attempt, started_at, rowid`, change)
	if err != nil {
		return nil, fmt.Errorf("list sessions of %q: %w", change, err)
	}
	return all, nil
}

// AddCheckpoint stores c once.
func (t *tx) AddCheckpoint(ctx context.Context, c checkpoint.Checkpoint) error {
	what := fmt.Sprintf("store checkpoint %q", c.ID)
	raw, err := encode(c)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "add-checkpoint", `INSERT INTO checkpoint (change, number, id, oid, status, cause, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (change, number) DO NOTHING`,
		c.Change, c.Number, c.ID, c.Commit, c.Status, c.Trigger, raw)
	if err != nil {
		return ofChange(what, c.Change, err)
	}
	if n == 1 {
		return nil
	}
	var there string
	if _, err := t.one(ctx, `SELECT oid FROM checkpoint WHERE change = ? AND number = ?`, []any{c.Change, c.Number}, &there); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if there != string(c.Commit) {
		return problem.Errorf(problem.Conflict, "sallyport checkpoint list "+string(c.Change),
			"checkpoint %d of %q is commit %.12s already, not %.12s", c.Number, c.Change, there, c.Commit)
	}
	return nil
}

// Checkpoints returns a change's, by number.
func (t *tx) Checkpoints(ctx context.Context, change id.Change) ([]checkpoint.Checkpoint, error) {
	all, err := docs[checkpoint.Checkpoint](ctx, t, `SELECT doc FROM checkpoint WHERE change = ? ORDER BY number`, change)
	if err != nil {
		return nil, fmt.Errorf("list checkpoints of %q: %w", change, err)
	}
	return all, nil
}

// Checkpoint returns one. The name holds only a few digits of the commit; where two
// changes have the same, neither is taken for the other.
func (t *tx) Checkpoint(ctx context.Context, id id.Checkpoint) (checkpoint.Checkpoint, error) {
	all, err := docs[checkpoint.Checkpoint](ctx, t, `SELECT doc FROM checkpoint WHERE id = ? LIMIT 2`, id)
	switch {
	case err != nil:
		return checkpoint.Checkpoint{}, fmt.Errorf("read checkpoint %q: %w", id, err)
	case len(all) == 0:
		return checkpoint.Checkpoint{}, problem.Errorf(problem.NotFound, "sallyport change list", "there is no checkpoint %q in this home", id)
	case len(all) > 1:
		return checkpoint.Checkpoint{}, problem.Errorf(problem.Conflict, "sallyport checkpoint list "+string(all[0].Change),
			"%q names a checkpoint of %q and one of %q", id, all[0].Change, all[1].Change)
	}
	return all[0], nil
}

// AddProposal stores p as the change's current one. Errors: proposal.ErrSuperseded if its
// number is not the next.
func (t *tx) AddProposal(ctx context.Context, p proposal.Proposal) error {
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
func (t *tx) Proposal(ctx context.Context, change id.Change) (proposal.Proposal, bool, error) {
	all, err := docs[proposal.Proposal](ctx, t, `SELECT doc FROM proposal WHERE change = ? ORDER BY number DESC LIMIT 1`, change)
	if err != nil {
		return proposal.Proposal{}, false, fmt.Errorf("read the proposal of %q: %w", change, err)
	}
	if len(all) == 0 {
		return proposal.Proposal{}, false, nil
	}
	return all[0], true, nil
}
