package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

const (
	leaseTTL    = 30 * time.Second // of the next step of one change
	attemptsMax = 3                // of one step, when the machine is at fault
	lockedMax   = 5                // of a landing, when something else has locked the repository
	retryWait   = time.Second      // before the second attempt; doubled after that
)

// errCancelled is the cause of a step's context when a person withdrew the change.
var errCancelled = problem.New(problem.Conflict, "cancelled")

// withdrawn is errCancelled with who said so and why.
type withdrawn struct {
	by     audit.Actor
	reason string
	next   string // a command to run; "" = the usual one
}

func (w *withdrawn) Error() string { return "cancelled by " + w.by.Name }
func (w *withdrawn) Unwrap() error { return errCancelled }

// Run takes every change whose next step is due and whose lease is free, until ctx ends
// and all steps have returned. It first takes over what an earlier daemon of this home held.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.DB.InTx(ctx, func(tx store.Tx) error { return tx.ReleaseClaims(ctx, c.holder) }); err != nil && ctx.Err() == nil {
		return fmt.Errorf("take over unfinished work: %w", err)
	}
	if err := c.endLost(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end what an earlier daemon ran: %w", err)
	}
	if err := c.unlock(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("free the refs of open changes: %w", err)
	}
	c.mu.Lock()
	c.life = ctx
	c.mu.Unlock()
	var steps sync.WaitGroup
	defer c.endAsides()
	defer steps.Wait()
	steps.Go(func() { c.sweep(ctx) }) // what it has to look at may be much: nobody waits for it
	for ctx.Err() == nil {
		row, ok, err := c.claim(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("claim a change: %w", err)
		case ok:
			steps.Go(func() { c.step(ctx, row) })
		default:
			if err := c.sleep(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Controller) claim(ctx context.Context) (row change.Row, ok bool, err error) {
	// Looking first costs a read; claiming costs a durable write.
	due, any, err := c.nextDue(ctx)
	if err != nil || !any || due.After(time.Now()) {
		return change.Row{}, false, err
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		row, ok, err = tx.ClaimDue(ctx, c.holder, now(), leaseTTL)
		return err
	})
	return row, ok, err
}

func (c *Controller) nextDue(ctx context.Context) (due time.Time, any bool, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		due, any, err = tx.NextDue(ctx)
		return err
	})
	return due, any, err
}

// Owes reports whether anything is to be done by itself, now or later: a way back that has failed is tried again.
func (c *Controller) Owes(ctx context.Context) bool {
	_, any, err := c.nextDue(ctx)
	return any || err != nil
}

// sleep waits for a wake-up, for the next row to fall due, or for the end.
func (c *Controller) sleep(ctx context.Context) error {
	due, any, err := c.nextDue(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	var timer <-chan time.Time
	if any {
		t := time.NewTimer(max(time.Until(due), time.Millisecond))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
	case <-c.wake:
	case <-timer:
	}
	return nil
}

// step runs the next step of a claimed row and writes what came of it. If the daemon ends
// meanwhile nothing came of it: the row keeps its state for the next one.
func (c *Controller) step(daemon context.Context, row change.Row) {
	ctx, cancel := context.WithCancelCause(daemon)
	defer cancel(nil)
	leave, err := c.works.Take(ctx, row.ID)
	if err != nil {
		return
	}
	defer leave()
	c.mu.Lock()
	c.busy++
	c.cancels[row.ID] = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.busy--
		delete(c.cancels, row.ID)
		c.mu.Unlock()
		c.poke()
	}()
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		c.renew(ctx, cancel, row)
	}()
	if err = c.stillOurs(ctx, row); err == nil {
		err = c.run(ctx, row)
	}
	if err != nil && errors.Is(context.Cause(ctx), errCancelled) {
		err = context.Cause(ctx) // whatever it broke off
	}
	cancel(nil)
	<-renewed
	if err == nil || daemon.Err() != nil && !errors.Is(err, errCancelled) {
		return
	}
	// What is written now must be written although the step's context has ended.
	ctx = context.WithoutCancel(ctx)
	if err := c.settle(ctx, row, err); err != nil {
		c.Log.Error("the outcome of a step could not be recorded; the step runs again when its lease ends", "change", row.ID, "state", row.State, "error", err)
	}
}

// stillOurs fails if the lease on a row went to another while this step waited for its turn.
func (c *Controller) stillOurs(ctx context.Context, row change.Row) error {
	at, err := c.row(ctx, row.ID)
	if err == nil && at.Fence != row.Fence {
		err = change.ErrMoved
	}
	return err
}

// lasting is a context for what goes on when a person's call or a cancelled step has ended, but
// not when the daemon does: the next one finds what is left to do.
func (c *Controller) lasting() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.life
}

// run does the work of one state. A nil error means that it has moved the row itself.
func (c *Controller) run(ctx context.Context, row change.Row) error {
	if row.Cancel && change.State(row.State) != change.InTrial && change.State(row.State) != change.RollbackFailed {
		if err := c.withdrawable(ctx, row); err == nil {
			return errCancelled
		}
	}
	switch change.State(row.State) {
	case change.Requested, change.Preparing, change.Submitted:
		if err := c.needed(ctx, row); err != nil {
			return err
		}
	}
	switch change.State(row.State) {
	case change.Requested:
		return c.accept(ctx, row)
	case change.Preparing:
		return c.prepare(ctx, row)
	case change.Working:
		return c.work(ctx, row)
	case change.Submitted:
		return c.submit(ctx, row)
	case change.Landing:
		return c.land(ctx, row)
	case change.InTrial:
		return c.try(ctx, row)
	case change.RollbackFailed:
		return c.mend(ctx, row)
	}
	return fmt.Errorf("a change in state %s has no step to run", row.State)
}

// renew keeps the lease while a step runs; losing it ends the step.
func (c *Controller) renew(ctx context.Context, cancel context.CancelCauseFunc, row change.Row) {
	tick := time.NewTicker(leaseTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := c.DB.InTx(ctx, func(tx store.Tx) error { return tx.RenewClaim(ctx, row, now(), leaseTTL) })
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("keep the lease of %s: %w", row.ID, err))
				return
			}
		}
	}
}

// settle writes what came of a step that did not move its row: cancelled, to be tried
// again, or failed for good. The machine's faults are tried again; a refusal is an answer.
// A row that another holds by now, or that has come to its end, is left as it is.
func (c *Controller) settle(ctx context.Context, step change.Row, because error) error {
	var row, was change.Row
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		var err error
		if row, err = tx.Change(ctx, step.ID); err != nil {
			return err
		}
		if was = row; row.Fence != step.Fence || change.State(row.State).Final() {
			return nil
		}
		return c.answer(ctx, tx, &row, because)
	})
	if err != nil || row.Fence != step.Fence {
		return err
	}
	if change.State(was.State).Final() {
		c.Log.Warn("a step failed after its change had ended", "change", row.ID, "state", row.State, "error", because)
		return nil
	}
	if row.State == was.State && row.Reason == was.Reason { // it waits on, and who watches knows
		c.poke()
		return nil
	}
	c.moved(row)
	if change.State(row.State).Final() {
		c.standDown(ctx, row)
		c.tidy(c.lasting(), row)
	}
	return nil
}

// answer moves a row by the error of its step, or makes it due again.
func (c *Controller) answer(ctx context.Context, tx store.Tx, row *change.Row, because error) error {
	if errors.Is(because, errCancelled) {
		said := &withdrawn{by: audit.Host}
		_ = errors.As(because, &said) // without: the request was found in the row
		event, err := c.withdrawal(ctx, tx, *row)
		if err == nil {
			return c.withdraw(ctx, tx, row, event, *said)
		}
		because = err
	}
	switch change.State(row.State) {
	case change.InTrial: // nothing but its end ends it
		return c.again(ctx, tx, row, because)
	case change.RollbackFailed: // nor this, but a person's word, which whatever stands in the way is told with
		_, tried, err := tx.Trial(ctx, row.ID)
		if err != nil {
			return err
		}
		if !tried && !waits(because) {
			because = stranded(row.ID, problem.Of(because).Text)
		}
		return c.again(ctx, tx, row, because)
	case change.Landing:
		return c.notLanded(ctx, tx, row, because)
	}
	if transient(because) && row.Attempts+1 < attemptsMax {
		return c.again(ctx, tx, row, because)
	}
	if _, err := change.State(row.State).Next(change.Fail); err != nil { // a person's turn: what failed came after the move
		c.Log.Warn("a step failed after its change had moved on", "change", row.ID, "state", row.State, "error", because)
		return nil
	}
	return c.move(ctx, tx, row, Move{Event: change.Fail, By: audit.Host, Verb: "failed", Because: because})
}

// again leaves a row where it is and makes it due later.
func (c *Controller) again(ctx context.Context, tx store.Tx, row *change.Row, because error) error {
	wait := retryWait << min(row.Attempts, 6)
	switch {
	case waits(because): // that is no attempt
		wait = retryWait
	case change.State(row.State) == change.InTrial:
		wait = min(wait, 4*retryWait)
		fallthrough
	default:
		row.Attempts++
	}
	p := problem.Of(because)
	row.Reason = c.Secrets.Redact(p.Text)
	if (change.State(row.State) == change.RollbackFailed || change.State(row.State) == change.Landing) && p.Next != "" {
		row.Next = c.Secrets.Redact(p.Next)
	}
	row.Holder, row.Until, row.Due = "", time.Time{}, now().Add(wait)
	return tx.MoveChange(ctx, row.State, *row)
}

// mend takes up what could be neither finished nor taken back: a landing, or the way back of a trial.
func (c *Controller) mend(ctx context.Context, row change.Row) error {
	tried := false
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		_, tried, err = tx.Trial(ctx, row.ID)
		return err
	})
	if err != nil {
		return err
	}
	if tried {
		return c.try(ctx, row)
	}
	return c.land(ctx, row)
}

// transient reports whether trying again may help: something missing, busy or broken, not a no.
func transient(err error) bool {
	switch problem.KindOf(err) {
	case problem.Unavailable, problem.Internal:
		return true
	}
	return false
}
