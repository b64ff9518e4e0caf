package sqlite

import (
	"context"
	"fmt"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/checkpoint"
)

// checkpoints are what was recorded of workspaces.
type checkpoints struct{ *queries }

// AddCheckpoint stores c once.
func (t checkpoints) AddCheckpoint(ctx context.Context, c checkpoint.Checkpoint) error {
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
func (t checkpoints) Checkpoints(ctx context.Context, change id.Change) ([]checkpoint.Checkpoint, error) {
	all, err := docs[checkpoint.Checkpoint](ctx, t.queries, `SELECT doc FROM checkpoint WHERE change = ? ORDER BY number`, change)
	return all, doing(err, "list checkpoints of %q", change)
}

// Checkpoint returns one. The name holds only a few digits of the commit; where two
// changes have the same, neither is taken for the other.
func (t checkpoints) Checkpoint(ctx context.Context, id id.Checkpoint) (checkpoint.Checkpoint, error) {
	all, err := docs[checkpoint.Checkpoint](ctx, t.queries, `SELECT doc FROM checkpoint WHERE id = ? LIMIT 2`, id)
	switch {
	case err != nil:
		return checkpoint.Checkpoint{}, fmt.Errorf("read checkpoint %q: %w", id, err)
	case len(all) == 0:
		return checkpoint.Checkpoint{}, problem.Errorf(problem.NotFound, "sallyport checkpoint list CHANGE",
			"there is no checkpoint %q in this home; a whole id is wanted, as sallyport checkpoint list names it", id)
	case len(all) > 1:
		return checkpoint.Checkpoint{}, problem.Errorf(problem.Conflict, "sallyport checkpoint list "+string(all[0].Change),
			"%q names a checkpoint of %q and one of %q", id, all[0].Change, all[1].Change)
	}
	return all[0], nil
}
