package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/trial"
)

// trials are what landed and is not decided yet, or was.
type trials struct{ *queries }

// AddTrial stores a new row, undecided. Errors: problem.Conflict if the change, or the landing, has one;
// problem.NotFound without a landing.
func (t trials) AddTrial(ctx context.Context, r trial.Trial) error {
	what := fmt.Sprintf("store the trial of %q", r.Change)
	if r.Handshake.Decided() {
		return problem.Errorf(problem.Internal, "", "%s: it begins as %q", what, r.Handshake)
	}
	if err := exact(what, r); err != nil {
		return err
	}
	raw, err := encode(r)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = t.write(ctx, "begin-trial", `INSERT INTO trial (change, landing, handshake_state, deadman_started_at, deadman_expires_at, reason, doc)
		VALUES (?, ?, ?, ?, ?, '', ?)`, r.Change, r.Landing, r.Handshake, ms(r.Started.Wall), expires(r), raw)
	if duplicate(err) {
		return problem.Errorf(problem.Conflict, "sallyport change show "+string(r.Change), "%s: it has one: %w", what, err)
	}
	if orphan(err) {
		return problem.Errorf(problem.NotFound, "sallyport change list", "%s: there is no landing %q of a change %q", what, r.Landing, r.Change)
	}
	return doing(err, "%s", what)
}

// expires is the end as it stands in its column: whole milliseconds after the start.
func expires(r trial.Trial) sql.NullInt64 {
	at := ms(r.Started.Wall)
	at.Int64 += r.Expires.In.Milliseconds()
	return at
}

// Trial returns the change's.
func (t trials) Trial(ctx context.Context, change id.Change) (trial.Trial, bool, error) {
	one, ok, err := firstOf(t.list(ctx, `WHERE change = ?`, change))
	return one, ok, doing(err, "read the trial of %q", change)
}

// OpenTrials returns those that hold something up still, oldest first.
func (t trials) OpenTrials(ctx context.Context) ([]trial.Trial, error) {
	all, err := t.list(ctx, openTrials)
	return all, doing(err, "list open trials")
}

const openTrials = `WHERE change IN (SELECT id FROM change WHERE state IN ('in_trial', 'rollback_failed')) ORDER BY +seq`

func (t trials) list(ctx context.Context, where string, args ...any) ([]trial.Trial, error) {
	return rows(ctx, t.queries, func(row scanner, r *trial.Trial) error {
		var raw, reason string
		var handshake trial.Handshake
		var actor sql.NullString
		var at sql.NullInt64
		var timedOut bool
		if err := row.Scan(&raw, &handshake, &actor, &at, &reason, &timedOut); err != nil {
			return err
		}
		var err error
		if *r, err = decode[trial.Trial](raw); err != nil {
			return err
		}
		r.Handshake, r.Reason, r.TimedOut, r.At = handshake, reason, timedOut, maybe(at)
		r.By, err = decodeMaybe[audit.Actor](actor)
		return err
	}, `SELECT doc, handshake_state, actor, at, reason, timed_out FROM trial `+where, args...)
}

// MoveTrial writes what the step of the change knows; who decided and why stay as they are.
func (t trials) MoveTrial(ctx context.Context, from trial.Handshake, r trial.Trial) error {
	what := fmt.Sprintf("move the trial of %q from %s to %s", r.Change, from, r.Handshake)
	if r.Handshake.Decided() && from != r.Handshake {
		return problem.Errorf(problem.Internal, "", "%s: this state needs a decision", what)
	}
	raw, err := encode(r)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "move-trial", `UPDATE trial SET handshake_state = ?, deadman_expires_at = ?, doc = ?
		WHERE change = ? AND handshake_state = ?`, r.Handshake, expires(r), raw, r.Change, from)
	return moved(what, n, err)
}

// DecideTrial writes the winner, once.
func (t trials) DecideTrial(ctx context.Context, change id.Change, d trial.Decision) error {
	what := fmt.Sprintf("decide the trial of %q: %s", change, d.To)
	if !d.To.Decided() {
		return problem.Errorf(problem.Internal, "", "%s: this state is no decision", what)
	}
	actor, err := encode(d.By)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	n, err := t.write(ctx, "decide-trial", `UPDATE trial SET handshake_state = ?, actor = ?, at = ?, reason = ?, timed_out = ?
		WHERE change = ? AND handshake_state NOT IN ('confirmed', 'rolled_back')`, d.To, actor, ms(d.At), plain(d.Reason), d.TimedOut, change)
	return moved(what, n, err)
}

// moved is the answer of a compare-and-set that changed n rows.
func moved(what string, n int64, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n == 0 {
		return fmt.Errorf("%s: %w", what, change.ErrMoved)
	}
	return nil
}
