package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
)

// changes are the rows that are the work.
type changes struct{ *queries }

const changeColumns = `id, state, request, base, uid, attempts, problem, reason, next, reverted_by, cancel,
	chosen, start_from, identity, resumes, rollbacks, created_at, moved_at, due_at, holder, fence, until_at, outcome, blocked, swap`

func scanChange(row scanner, c *change.Row) error {
	var raw, swap string
	var created, moved, due, until sql.NullInt64
	err := row.Scan(&c.ID, &c.State, &raw, &c.Base, &c.UID, &c.Attempts, &c.Problem, &c.Reason, &c.Next, &c.RevertedBy,
		&c.Cancel, &c.Chosen, &c.From, &c.Identity, &c.Resumes, &c.Rollbacks, &created, &moved, &due, &c.Holder, &c.Fence, &until,
		&c.Outcome, &c.Blocked, &swap)
	if err != nil {
		return err
	}
	c.Created, c.Moved, c.Due, c.Until = clock(created), clock(moved), clock(due), clock(until)
	if c.Request, err = decode[request.Request](raw); err != nil || swap == "" {
		return err
	}
	said, err := decode[change.Swap](swap)
	c.Swap = &said
	return err
}

// AddChange stores a new row; its state may be any. Errors: problem.Conflict if the id is taken,
// problem.Refused for text that is not UTF-8.
func (t changes) AddChange(ctx context.Context, c change.Row) error {
	if err := exact("the request", c.Request); err != nil {
		return err
	}
	raw, err := encode(c.Request)
	if err != nil {
		return fmt.Errorf("store change %q: %w", c.ID, err)
	}
	swap, err := swapOf(c)
	if err != nil {
		return err
	}
	_, err = t.write(ctx, "add-change", `INSERT INTO change (top, `+changeColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		c.Request.Project.Top, c.ID, c.State, raw, c.Base, c.UID, c.Attempts, c.Problem, c.Reason, c.Next, c.RevertedBy,
		c.Cancel, c.Chosen, c.From, c.Identity, c.Resumes, c.Rollbacks, ms(c.Created), ms(c.Moved), ms(c.Due), c.Holder, c.Fence,
		ms(c.Until), c.Outcome, c.Blocked, swap)
	if duplicate(err) {
		if strings.Contains(err.Error(), "change.swaps") {
			return secondSwap(c, err)
		}
		return problem.Errorf(problem.Conflict, "sallyport change show "+string(c.ID), "there is a change %q already: %w", c.ID, err)
	}
	return doing(err, "store change %q", c.ID)
}

// secondSwap says that c would be the second open change of what its group runs.
func secondSwap(c change.Row, err error) error {
	return problem.Errorf(problem.Conflict, "sallyport group show "+c.Request.Group,
		"previous swap still pending — resolve it first: another change of what the group %s runs is open: %w", c.Request.Group, err)
}

// swapOf is what an agent has proposed, as a column has it.
func swapOf(c change.Row) (string, error) {
	if c.Swap == nil {
		return "", nil
	}
	if err := exact("what the agent proposed", *c.Swap); err != nil {
		return "", err
	}
	return encode(c.Swap)
}

// Change returns one row.
func (t changes) Change(ctx context.Context, id id.Change) (change.Row, error) {
	c, ok, err := t.first(ctx, `SELECT `+changeColumns+` FROM change WHERE id = ?`, id)
	if err != nil {
		return change.Row{}, fmt.Errorf("read change %q: %w", id, err)
	}
	if !ok {
		return change.Row{}, noChange(id)
	}
	return c, nil
}

func noChange(id id.Change) error {
	return problem.Errorf(problem.NotFound, "sallyport change list", "there is no change %q in this home", id)
}

// first reads the first row of a query for changes; false if there is none.
func (t changes) first(ctx context.Context, query string, args ...any) (c change.Row, found bool, err error) {
	if err := t.usable(); err != nil {
		return c, false, err
	}
	err = scanChange(t.run.QueryRowContext(ctx, query, args...), &c)
	if errors.Is(err, sql.ErrNoRows) {
		return change.Row{}, false, nil
	}
	return c, err == nil, t.fault(err)
}

// Changes returns newest first.
func (t changes) Changes(ctx context.Context, f change.Filter) ([]change.Row, error) {
	query, args := `SELECT `+changeColumns+` FROM change WHERE 1`, []any{}
	if f.Top != "" {
		query, args = query+` AND top = ?`, append(args, f.Top)
	}
	if f.States != nil {
		query += ` AND state IN (` + strings.TrimSuffix(strings.Repeat("?,", len(f.States)), ",") + `)`
		for _, s := range f.States {
			args = append(args, s)
		}
	}
	if f.Swaps != "" {
		query, args = query+` AND swaps = ?`, append(args, f.Swaps)
	}
	if f.Limit <= 0 {
		f.Limit = 100
	}
	all, err := rows(ctx, t.queries, scanChange, query+` ORDER BY seq DESC LIMIT +?`, append(args, f.Limit)...)
	return all, doing(err, "list changes")
}

// MoveChange writes what may change of c, if the row is as the caller believes. A wish to
// cancel that came meanwhile stays: it is never taken back, and ends with what it asked for. So does a lease
// that was renewed meanwhile: the caller's row may be as old as its step.
func (t changes) MoveChange(ctx context.Context, from change.State, c change.Row) error {
	swap, err := swapOf(c)
	if err != nil {
		return err
	}
	n, err := t.write(ctx, "move-"+string(c.State), `UPDATE change SET state = ?, base = ?, uid = ?, attempts = ?, problem = ?,
		reason = ?, next = ?, reverted_by = ?, cancel = CASE WHEN state IN ('cancelled', 'failed', 'rejected') THEN 0 ELSE max(cancel, ?) END,
		chosen = ?, start_from = ?, identity = ?, resumes = ?, rollbacks = ?, moved_at = ?, due_at = ?, outcome = ?, blocked = ?, swap = ?, holder = ?,
		until_at = CASE WHEN holder <> '' AND holder = ? THEN max(coalesce(until_at, 0), ?) ELSE ? END
		WHERE id = ? AND state = ? AND fence = ?`,
		c.State, c.Base, c.UID, c.Attempts, c.Problem, c.Reason, c.Next, c.RevertedBy, c.Cancel,
		c.Chosen, c.From, c.Identity, c.Resumes, c.Rollbacks, ms(c.Moved), ms(c.Due), c.Outcome, c.Blocked, swap, c.Holder,
		c.Holder, ms(c.Until), ms(c.Until), c.ID, from, c.Fence)
	if duplicate(err) {
		return secondSwap(c, err)
	}
	if err != nil {
		return fmt.Errorf("move change %q from %s to %s: %w", c.ID, from, c.State, err)
	}
	if n == 1 {
		return nil
	}
	now, err := t.Change(ctx, c.ID)
	if err != nil {
		return err
	}
	if now.State != from {
		return problem.Case(change.ErrMoved, "sallyport change show "+string(c.ID),
			"the change %q is %s by now, not %s", c.ID, now.State, from)
	}
	return problem.Case(change.ErrMoved, "sallyport change show "+string(c.ID),
		"another worker has taken over the change %q", c.ID)
}

// claimable finds the change that is due longest and free, in one pass over an index that
// holds only what is due at some time; nextDue reads the same index.
const (
	claimable = `SELECT seq FROM change WHERE due_at IS NOT NULL AND due_at <= ? AND (until_at IS NULL OR until_at <= ?)
		ORDER BY due_at, seq LIMIT 1`
	nextDue = `SELECT min(max(due_at, coalesce(until_at, due_at))) FROM change WHERE due_at IS NOT NULL`
)

// ClaimDue takes the lease on the change that is due longest.
func (t changes) ClaimDue(ctx context.Context, holder string, now time.Time, ttl time.Duration) (change.Row, bool, error) {
	if err := t.writable("a claim"); err != nil {
		return change.Row{}, false, err
	}
	return t.claim(ctx, `seq = (`+claimable+`)`, holder, ms(now.Add(ttl)), ms(now), ms(now))
}

// ClaimOnly is ClaimDue of one change.
func (t changes) ClaimOnly(ctx context.Context, id id.Change, holder string, now time.Time, ttl time.Duration) (change.Row, bool, error) {
	if err := t.writable("a claim"); err != nil {
		return change.Row{}, false, err
	}
	const due = `id = ? AND due_at IS NOT NULL AND due_at <= ? AND (until_at IS NULL OR until_at <= ?)`
	return t.claim(ctx, due, holder, ms(now.Add(ttl)), id, ms(now), ms(now))
}

// claim takes the lease on the change that which finds; args begin with the holder and the end of the lease.
func (t changes) claim(ctx context.Context, which string, args ...any) (change.Row, bool, error) {
	c, ok, err := t.first(ctx, `UPDATE change SET holder = ?, fence = fence + 1, until_at = ? WHERE `+which+` RETURNING `+changeColumns, args...)
	if err != nil {
		return change.Row{}, false, fmt.Errorf("claim a due change: %w", err)
	}
	if ok {
		t.note("claim")
	}
	return c, ok, nil
}

// RenewClaim extends the lease of a claimed change.
func (t changes) RenewClaim(ctx context.Context, c change.Row, now time.Time, ttl time.Duration) error {
	n, err := t.write(ctx, "renew-claim", `UPDATE change SET until_at = ? WHERE id = ? AND holder = ? AND holder <> '' AND fence = ?`,
		ms(now.Add(ttl)), c.ID, c.Holder, c.Fence)
	if err != nil {
		return fmt.Errorf("renew the claim on change %q: %w", c.ID, err)
	}
	if n == 0 {
		return fmt.Errorf("renew the claim on change %q: %w", c.ID, lock.ErrLost)
	}
	return nil
}

// ReleaseClaims frees what others held. The fence rises, so that nothing they still do is taken.
func (t changes) ReleaseClaims(ctx context.Context, holder string) error {
	_, err := t.write(ctx, "release-claims",
		`UPDATE change SET holder = '', until_at = NULL, fence = fence + 1 WHERE holder <> '' AND holder <> ?`, holder)
	return doing(err, "release claims")
}

// NextDue returns the first time at which ClaimDue can find something.
func (t changes) NextDue(ctx context.Context) (time.Time, bool, error) {
	var at sql.NullInt64
	_, err := t.one(ctx, nextDue, nil, &at)
	return clock(at), at.Valid, doing(err, "find what is due next")
}

// RequestCancel marks a change.
func (t changes) RequestCancel(ctx context.Context, id id.Change) error {
	n, err := t.write(ctx, "request-cancel", `UPDATE change SET cancel = 1 WHERE id = ?`, id)
	if err != nil {
		return fmt.Errorf("cancel change %q: %w", id, err)
	}
	if n == 0 {
		return noChange(id)
	}
	return nil
}

// NextUID counts up from 0.
func (t changes) NextUID(ctx context.Context) (uint32, error) {
	if err := t.writable("a new uid"); err != nil {
		return 0, err
	}
	var next uint32
	ok, err := t.one(ctx, `UPDATE counter SET next = next + 1 WHERE name = 'uid' RETURNING next - 1`, nil, &next)
	if err != nil || !ok {
		return 0, fmt.Errorf("take the next uid (counter is there: %v): %w", ok, err)
	}
	t.note("next-uid")
	return next, nil
}

// ofChange adds the way out to an error about a row that hangs on a change.
func ofChange(what string, change id.Change, err error) error {
	if orphan(err) {
		return fmt.Errorf("%s: %w", what, noChange(change))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ofSubject is ofChange for a row that hangs on a change or a chat.
func ofSubject(what string, subject id.Subject, err error) error {
	change, ok := subject.Change()
	if !ok && orphan(err) {
		return fmt.Errorf("%s: %w", what, problem.Errorf(problem.NotFound, "sallyport session list", "there is no chat %q in this home", subject))
	}
	return ofChange(what, change, err)
}
