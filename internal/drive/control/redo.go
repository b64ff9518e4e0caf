package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
)

// tellRedo says to a program that reads messages and keeps nothing what has become of its files. The function it returns waits
// until that was said, or cannot be any more.
func (c *Controller) tellRedo(ctx context.Context, row change.Row, last session.Session, run *session.Running) (wait func(), err error) {
	if last.Interrupted != session.Redone || run.Talk == nil || run.Program.Keeps {
		return func() {}, nil
	}
	words, err := c.Redos.Words(ctx, row)
	if err != nil {
		return func() {}, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.told(context.WithoutCancel(ctx), row.ID, string(run.Session.ID), request.FirstLine(words), audit.Host, run.Talk.Tell(ctx, words))
	}()
	return func() { <-done }, nil
}
