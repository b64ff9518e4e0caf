package ledger

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// ErrCancelled is the cause of a step's context when a person withdrew the change.
var ErrCancelled = problem.New(problem.Conflict, "cancelled")

// Withdrawn is errCancelled with who said so and why.
type Withdrawn struct {
	By     audit.Actor
	Reason string
	next   string // a command to run; "" = the usual one
}

func (w *Withdrawn) Error() string { return "cancelled by " + w.By.Name }

func (w *Withdrawn) Unwrap() error { return ErrCancelled }

// Withdrawal is what a cancel means where a row stands: what has landed and could not be taken back, or has begun to land
// and could be brought to neither end, is left as it stands. Errors: conflict, if nothing of it can be.
func (l *Ledger) Withdrawal(ctx context.Context, tx store.Tx, row change.Row) (change.Event, error) {
	event := change.Cancel
	switch row.State {
	case change.RollbackFailed:
		event = change.GivenUp
	case change.Landing:
		latest, ok, err := tx.LandingOf(ctx, row.ID)
		if err != nil {
			return "", err
		}
		if ok && latest.Unfinished() {
			return "", problem.Errorf(problem.Conflict, "sallyport change watch "+string(row.ID),
				"%s has begun to land and cannot be cancelled now: sallyport finishes the landing first, or rolls it back", row.ID)
		}
	}
	if _, err := row.State.Next(event); err != nil {
		return "", problem.Errorf(problem.Conflict, "sallyport change show "+string(row.ID), "%s is %s and cannot be cancelled", row.ID, row.State.Words())
	}
	return event, nil
}

// Withdrawable is withdrawal's error, for a step that found the wish in its row.
func (l *Ledger) Withdrawable(ctx context.Context, row change.Row) error {
	return l.DB.Read(ctx, func(tx store.Tx) error {
		_, err := l.Withdrawal(ctx, tx, row)
		return err
	})
}

// Withdraw moves a row as a cancel has it. What is asked of a person is void; a landing that is given up is not tried again.
func (l *Ledger) Withdraw(ctx context.Context, tx store.Tx, row *change.Row, event change.Event, said Withdrawn) error {
	if err := approval.Withdraw(ctx, tx, row.ID, Now()); err != nil {
		return err
	}
	latest, ok, err := tx.LandingOf(ctx, row.ID)
	if err != nil {
		return err
	}
	half := ok && latest.Unfinished()
	if half {
		at := Now()
		latest.State, latest.Ended = landing.Stranded, &at
		if err := tx.CloseLanding(ctx, latest); err != nil {
			return err
		}
	}
	t, tried, err := tx.Trial(ctx, row.ID)
	if err != nil {
		return err
	}
	files := "and the new files remain"
	switch {
	case half:
		files = "and the files stay as they stand, perhaps some old and some new"
	case tried && t.Restored || row.Request.Kind == request.Revert:
		files = "and the old files, which are back, remain"
	}
	return l.Move(ctx, tx, row, said.move(event, *row, files))
}

// move is what a cancel writes; files says which of them a rollback that is stopped leaves.
func (w Withdrawn) move(event change.Event, row change.Row, files string) Move {
	if event == change.Cancel {
		next := w.next
		if next == "" {
			next = "sallyport change diff " + string(row.ID)
		}
		return Move{Event: change.Cancel, By: w.By, Verb: "cancelled", Reason: w.Reason, Next: next}
	}
	stopped := w.By.Name + " stopped the rollback"
	if w.Reason != "" {
		stopped += " (" + w.Reason + ")"
	}
	why := problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "%s, %s", stopped, files)
	return Move{Event: change.GivenUp, By: w.By, Verb: "stopped the rollback", Because: why}
}
