package confirm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// takeBack brings the old files back by a landing of their own, forwards, has the old version come up as the new one
// had to, and only then says so (SM-127, SM-129, SM-905, SM-906). What cannot be done is rollback_failed, and tried again.
func (c *Confirmer) takeBack(ctx context.Context, row change.Row, t trial.Trial) error {
	if err := (trying{c}).disarmHost(row, t); err != nil {
		return err
	}
	release, err := c.Guard.Hold(t.Landing)
	if err != nil { // going back needs no keeper
		c.Log.Warn("no keeper watches this rollback", "change", row.ID, "error", err)
		release = func() {}
	}
	defer release()
	c.leave(ctx, row, t)
	err = c.finishWayBack(ctx, row, &t)
	switch {
	case ctx.Err() != nil: // the keeper stays armed, and brings back a daemon that goes on
		return context.Cause(ctx)
	case errors.Is(err, landing.ErrBusy) && row.Attempts+1 < ledger.AttemptsMax:
		return err // somebody else's short work; the keeper stays armed
	}
	release()
	if err != nil {
		c.Guard.Disarm(t.Landing)
		return c.failWayBack(ctx, row, t, err)
	}
	ended, err := c.InTx(context.WithoutCancel(ctx), row, func(tx store.Tx, row *change.Row) error {
		if err := ledger.Refresh(ctx, tx, row); err != nil {
			return err
		}
		return c.Move(ctx, tx, row, ledger.Move{
			Event: change.TakenBack, By: *t.By, Verb: "rolled back", Subject: string(t.Undoing), Reason: t.Said(),
			Next: "sallyport change diff " + string(row.ID),
		})
	})
	if err != nil {
		return err
	}
	c.Guard.Disarm(t.Landing)
	c.Tidy(c.Lasting(), ended)
	return nil
}

// leaveMax is how long the way back of files waits for a session that begins on the old ones.
const leaveMax = 20 * time.Second

// leave has a group run its old files at once: that they cannot go back yet does not keep the new ones running.
func (c *Confirmer) leave(ctx context.Context, row change.Row, t trial.Trial) {
	if t.Target.Group == "" || t.Restored {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveMax)
	defer cancel()
	if err := c.Chats.Begin(ctx, group.Folder(t.Target.Group), t.Target.Chat); err != nil {
		c.Log.Warn("the agent of a group did not begin on its old files; it is tried again once they are back", "change", row.ID, "group",
			t.Target.Group, "error", err)
	}
}

// finishWayBack does what of the way back is not done yet.
func (c *Confirmer) finishWayBack(ctx context.Context, row change.Row, t *trial.Trial) error {
	if !t.Restored {
		if err := c.Restore(context.WithoutCancel(ctx), row, t); err != nil {
			return err
		}
	}
	if t.Target.None() {
		return nil
	}
	// What another change has on trial by now is not restarted beside it, nor does it answer for the old version.
	err := c.DB.Read(ctx, func(tx store.Tx) error { return c.Free(ctx, tx, row) })
	if err == nil {
		err = c.checkInPlace(ctx, row)
	}
	if err != nil {
		return err
	}
	if err := c.startAgain(ctx, row, *t); err != nil {
		return fmt.Errorf("sallyport restored the old files, but the old version does not answer: %w", err)
	}
	return nil
}

// failWayBack says loudly that a way back has failed; it is tried again with longer and longer pauses.
func (c *Confirmer) failWayBack(ctx context.Context, row change.Row, t trial.Trial, because error) error {
	ctx = context.WithoutCancel(ctx)
	p := problem.Of(because)
	if p.Next == "" {
		p.Next = "sallyport change show " + string(row.ID)
	}
	files := "leaves the new files as they stand"
	if t.Restored || row.Request.Kind == request.Revert {
		files = "ends that; the old files stay"
	}
	because = problem.Errorf(problem.Internal, p.Next,
		"sallyport could not roll the change back, and tries again: %s (sallyport change cancel %s %s)", p.Text, row.ID, files)
	if row.State == change.RollbackFailed {
		return because
	}
	_, err := c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		if err := ledger.Refresh(ctx, tx, row); err != nil {
			return err
		}
		return c.Move(ctx, tx, row, ledger.Move{Event: change.Stuck, By: audit.Host, Verb: "rollback failed", Because: because, Wait: ledger.RetryWait})
	})
	return err
}
