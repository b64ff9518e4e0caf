package control

import (
	"context"
	"errors"

	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
)

// ErrNobody says that the home names nobody to tell, which is no failure.
var ErrNobody = problem.New(problem.Unavailable, "the home's sallyport.yaml names nobody to notify")

// noteOf is what a person who watches nothing is told of a row that has moved; false if it is none of their business.
func (c *Controller) noteOf(row change.Row) (Note, bool) {
	n := Note{Change: row.ID, Text: row.Reason, Next: row.Next}
	switch change.State(row.State) {
	case change.AwaitingApproval:
		n.Kind = NoteWaiting
		if n.Text == "" {
			n.Text = "It waits for your approval: " + firstLine(row.Request.Text)
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
	n.Text = c.Secrets.Redact(n.Text)
	return n, true
}

// tell hands a note on beside whatever goes on, and calls told if it was taken. Nobody waits for it.
func (c *Controller) tell(n Note, told func()) {
	c.aside(func(ctx context.Context) {
		if err := c.Parts.Tell.Tell(ctx, n); err != nil {
			if !errors.Is(err, ErrNobody) {
				c.Log.Warn("nobody could be notified", "change", n.Change, "kind", n.Kind, "error", err)
			}
			return
		}
		told()
	})
}

// aside runs do beside the steps; Run returns only once it has ended. Nothing begins once the daemon is ending.
func (c *Controller) aside(do func(ctx context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if life := c.life; life.Err() == nil {
		c.asides.Go(func() { do(life) })
	}
}

// endAsides waits for what runs beside the steps; c.life has ended.
func (c *Controller) endAsides() {
	c.mu.Lock() // whoever was about to begin has begun
	c.mu.Unlock()
	c.asides.Wait()
}
