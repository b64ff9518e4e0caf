package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/land"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// Run takes every change whose next step is due and whose lease is free, until ctx ends
// and all steps have returned. It first takes over what an earlier daemon of this home held.
func (c *Controller) Run(ctx context.Context) error {
	if err := c.TakeOver(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("take over unfinished work: %w", err)
	}
	if err := c.EndLost(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end what an earlier daemon ran: %w", err)
	}
	if err := c.unlock(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("free the refs of open changes: %w", err)
	}
	if c.Settings.Still {
		return c.keepStill(ctx)
	}
	c.Begin(ctx)
	var steps sync.WaitGroup
	defer c.EndAsides()
	defer steps.Wait()
	steps.Go(func() { // what it has to look at may be much: nobody waits for it
		if c.awaitAll(ctx) {
			c.Sweep(ctx)
		}
	})
	for ctx.Err() == nil {
		row, ok, err := c.claim(ctx)
		c.Rounds.Add(1)
		switch {
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("claim a change: %w", err)
		case ok:
			steps.Go(func() { c.step(ctx, row) })
		case c.only.Load() != nil:
			c.pass(ctx)
		default:
			if err := c.Sleep(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// stillEvery is how often a controller that takes no step goes round.
const stillEvery = time.Second

// keepStill goes round and does nothing, until ctx ends.
func (c *Controller) keepStill(ctx context.Context) error {
	tick := time.NewTicker(stillEvery)
	defer tick.Stop()
	for {
		c.Rounds.Add(1)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
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
		c.Poke()
	}()
	renewed := make(chan struct{})
	go func(claimed change.Row) {
		defer close(renewed)
		c.Renew(ctx, cancel, claimed)
	}(row)
	if err = c.StillOurs(ctx, &row); err == nil {
		err = c.run(ctx, row)
	}
	if err != nil && errors.Is(context.Cause(ctx), ledger.ErrCancelled) {
		err = context.Cause(ctx) // whatever it broke off
	}
	cancel(nil)
	<-renewed
	if err == nil || daemon.Err() != nil && !errors.Is(err, ledger.ErrCancelled) {
		return
	}
	// What is written now must be written although the step's context has ended.
	ctx = context.WithoutCancel(ctx)
	if err := c.settle(ctx, row, err); err != nil {
		c.Log.Error("the outcome of a step could not be recorded; the step runs again when its lease ends", "change", row.ID, "state", row.State, "error", err)
	}
}

// run does the work of one state. A nil error means that it has moved the row itself.
func (c *Controller) run(ctx context.Context, row change.Row) error {
	if row.Cancel && row.State != change.InTrial && row.State != change.RollbackFailed {
		if err := c.Withdrawable(ctx, row); err == nil {
			return ledger.ErrCancelled
		}
	}
	switch row.State {
	case change.Requested, change.Preparing, change.Submitted:
		if err := c.Needed(ctx, row); err != nil {
			return err
		}
	}
	switch row.State {
	case change.Requested:
		return c.Requests.ExamineBase(ctx, row)
	case change.Preparing:
		return c.preparer.Prepare(ctx, row)
	case change.Working:
		return c.Work(ctx, row)
	case change.Submitted:
		return c.submissions.Submit(ctx, row)
	case change.Landing:
		return c.land.Land(ctx, row)
	case change.InTrial:
		return c.confirm.Try(ctx, row)
	case change.RollbackFailed:
		return c.mend(ctx, row)
	}
	return fmt.Errorf("a change in state %s has no step to run", row.State)
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
		if was = row; row.Fence != step.Fence || row.State.Final() {
			return nil
		}
		return c.answer(ctx, tx, &row, because)
	})
	if err != nil || row.Fence != step.Fence {
		return err
	}
	if was.State.Final() {
		c.Log.Warn("a step failed after its change had ended", "change", row.ID, "state", row.State, "error", because)
		return nil
	}
	if row.State == was.State && row.Reason == was.Reason { // it waits on, and who watches knows
		c.Poke()
		return nil
	}
	c.Moved(row)
	if row.State.Final() {
		c.land.StandDown(ctx, row)
		c.Tidy(c.Lasting(), row)
	}
	return nil
}

// answer moves a row by the error of its step, or makes it due again.
func (c *Controller) answer(ctx context.Context, tx store.Tx, row *change.Row, because error) error {
	if errors.Is(because, ledger.ErrCancelled) {
		said := &ledger.Withdrawn{By: audit.Host}
		_ = errors.As(because, &said) // without: the request was found in the row
		event, err := c.Withdrawal(ctx, tx, *row)
		if err == nil {
			return c.Withdraw(ctx, tx, row, event, *said)
		}
		because = err
	}
	switch row.State {
	case change.InTrial: // nothing but its end ends it
		return c.Postpone(ctx, tx, row, because)
	case change.RollbackFailed: // nor this, but a person's word, which whatever stands in the way is told with
		_, tried, err := tx.Trial(ctx, row.ID)
		if err != nil {
			return err
		}
		if !tried && !ledger.Waits(because) {
			because = land.Stranded(row.ID, problem.Of(because).Text)
		}
		return c.Postpone(ctx, tx, row, because)
	case change.Landing:
		return c.land.Settle(ctx, tx, row, because)
	}
	if ledger.Transient(because) && row.Attempts+1 < ledger.AttemptsMax {
		return c.Postpone(ctx, tx, row, because)
	}
	if _, err := row.State.Next(change.Fail); err != nil { // a person's turn: what failed came after the move
		c.Log.Warn("a step failed after its change had moved on", "change", row.ID, "state", row.State, "error", because)
		return nil
	}
	return c.Move(ctx, tx, row, ledger.Move{Event: change.Fail, By: audit.Host, Verb: "failed", Because: because})
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
		return c.confirm.Try(ctx, row)
	}
	return c.land.Land(ctx, row)
}
