package ledger

import (
	"context"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// Move is one edge of the table, with what the audit log says of it.
type Move struct {
	Event   change.Event
	By      audit.Actor
	Subject string // id of what it is about; "" = the change itself
	Verb    string // for the audit log; "" = the event's name
	Because error  // why, where it did not go well
	Reason  string // why, for a person; Because says it otherwise
	Next    string // a command to run
	Digests map[string]string
	Wait    time.Duration // before the next step is due
	Outcome string        // how it ends, where there is nothing to land
	Blocked string        // why, of Block; the audit log says it too
	Keep    bool          // the step that holds the row goes on holding it
}

// Move carries a row over one edge and writes its audit entry, both in tx. The row
// is changed in place; it is true only if tx commits.
func (l *Ledger) Move(ctx context.Context, tx store.Tx, row *change.Row, m Move) error {
	from := row.State
	to, err := from.Next(m.Event)
	if err != nil {
		return err
	}
	at := Now()
	row.State, row.Moved, row.Attempts = to, at, 0
	row.Problem, row.Reason, row.Next, row.Outcome, row.Blocked = "", m.Reason, m.Next, m.Outcome, m.Blocked
	if m.Because != nil {
		p := problem.Of(m.Because)
		row.Problem, row.Reason = string(p.Kind), p.Text
		if row.Next == "" {
			row.Next = p.Next
		}
	}
	row.Reason, row.Next = l.Secrets.Redact(row.Reason), l.Secrets.Redact(row.Next)
	row.Due = time.Time{}
	if to.Due() {
		row.Due = at.Add(m.Wait)
	}
	if !m.Keep {
		row.Holder, row.Until = "", time.Time{}
	}
	if err := tx.MoveChange(ctx, from, *row); err != nil {
		return err
	}
	l.Meter.Moving(row.ID, string(m.Event))
	verb := m.Verb
	if verb == "" {
		verb = string(m.Event)
	}
	if m.Blocked != "" {
		verb += ": " + m.Blocked
	}
	if err := l.Origin.ended(ctx, tx, *row, m); err != nil {
		return err
	}
	return l.Append(ctx, tx, row, m, verb, at)
}

// Append writes an audit entry about a row.
func (l *Ledger) Append(ctx context.Context, tx store.Tx, row *change.Row, m Move, verb string, at time.Time) error {
	subject := m.Subject
	if subject == "" {
		subject = string(row.ID)
	}
	return tx.AppendEntry(ctx, audit.Entry{
		At: at, Actor: m.By, Change: string(row.ID), Subject: subject,
		Verb: verb, Reason: l.Secrets.Redact(row.Reason), Digests: m.Digests,
	})
}

// RecordPassedChecks writes an audit entry for every check that succeeded; one that did not is what refuses the change.
func (l *Ledger) RecordPassedChecks(ctx context.Context, tx store.Tx, row change.Row, results []proposal.CheckResult, verb string,
	digests map[string]string, at time.Time) error {
	for _, r := range results {
		if !r.OK {
			continue
		}
		row.Reason = r.Command
		if err := l.Append(ctx, tx, &row, Move{By: audit.Host, Digests: digests}, verb, at); err != nil {
			return err
		}
	}
	return nil
}

// Moved tells who watches, and the reconciler, that a row has moved. Call it after the commit.
func (l *Ledger) Moved(row change.Row) {
	if row.State.Final() {
		l.Ended(row)
	}
	l.Meter.Moved(row.ID, string(row.State), row.Request.Kind == request.Revert, row.State.Final())
	l.Feed.Publish(change.Notice{Change: row.ID, At: row.Moved, Kind: "state", State: row.State, Text: row.Reason})
	l.Poke()
	if row.State == change.Finalized && row.Request.Kind == request.Revert {
		if err := l.overtake(l.Lasting(), row); err != nil {
			l.Log.Warn("other rollbacks of the same change still wait for approval; approving one ends it", "change", row.ID, "error", err)
		}
	}
	if n, ok := noteOf(row); ok {
		l.Notify(n, func() {})
	}
}

// Poke wakes the reconciler; waking it for nothing does no harm.
func (l *Ledger) Poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// InTx moves a row in a transaction of its own and tells of it.
func (l *Ledger) InTx(ctx context.Context, row change.Row, do func(tx store.Tx, row *change.Row) error) (change.Row, error) {
	at := row
	err := l.DB.InTx(ctx, func(tx store.Tx) error {
		at = row
		return do(tx, &at)
	})
	if err != nil {
		return row, err
	}
	l.Moved(at)
	return at, nil
}
