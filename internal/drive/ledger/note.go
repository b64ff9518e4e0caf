package ledger

import (
	"context"
	"errors"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
)

// ErrNobody says that the home names nobody to tell, which is no failure.
var ErrNobody = problem.New(problem.Unavailable, "the home's sallyport.yaml names nobody to notify")

// Teller tells a person who watches nothing.
type Teller interface {
	// Tell returns nil once n was handed on; then it counts as delivered. It must end by itself.
	Tell(ctx context.Context, n Note) error
}

// Note is what a person is told wherever they are. Its texts are redacted; names in them are not yet made inert.
type Note struct {
	Change id.Change // "" = it is about none
	Kind   NoteKind
	Text   string
	Next   string // a command to run; "" if there is none
}

// NoteKind is why a person is told.
type NoteKind string

const (
	NoteWaiting        NoteKind = "waiting"         // for an approval
	NoteAdmission      NoteKind = "admission"       // a stranger or a place waits for an answer
	NoteTrial          NoteKind = "trial"           // message 1: confirm or roll back
	NoteRolledBack     NoteKind = "rolled_back"     // by itself or by a person, after a trial
	NoteFailed         NoteKind = "failed"          // the change
	NoteRollbackFailed NoteKind = "rollback_failed" // loud: it needs a person
	NoteSettings       NoteKind = "settings"        // of no change: a file of the home does not load, or loads again
)

// noteOf is what a person who watches nothing is told of a row that has moved; false if it is none of their business.
func noteOf(row change.Row) (Note, bool) {
	n := Note{Change: row.ID, Text: row.Reason, Next: row.Next}
	switch row.State {
	case change.AwaitingApproval:
		n.Kind = NoteWaiting
		if n.Text == "" {
			n.Text = "It waits for your approval: " + row.Request.Headline()
		}
		if n.Next == "" {
			n.Next = "sallyport approve " + string(row.ID)
		}
	case change.Blocked:
		n.Kind = NoteWaiting
		n.Text = "The agent is stopped and waits for you: " + n.Text
	case change.RolledBack:
		if n.Kind = NoteRolledBack; row.RevertedBy != "" { // a person asked for it, and hears of that change
			return n, false
		}
	case change.Failed:
		n.Kind = NoteFailed
	case change.RollbackFailed:
		if n.Kind = NoteRollbackFailed; row.Attempts > 0 { // said when it began
			return n, false
		}
	default:
		return n, false
	}
	return n, true
}

// Notify hands a note on beside whatever goes on, its text without secrets, and calls told if it was taken. Nobody waits for it.
func (l *Ledger) Notify(n Note, told func()) {
	n.Text = l.Secrets.Redact(n.Text)
	l.Aside(func(ctx context.Context) {
		if err := l.Parts.Tell.Tell(ctx, n); err != nil {
			if !errors.Is(err, ErrNobody) {
				l.Log.Warn("nobody could be notified", "change", n.Change, "kind", n.Kind, "error", err)
			}
			return
		}
		told()
	})
}
