package confirm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

// errLate and errDecided end what a trial waits for.
var (
	errLate    = errors.New("the time is over")
	errDecided = errors.New("it is decided")
)

// Try brings what has landed to its end: kept, or taken back. Each part may run again after a crash; the row says where
// it was, and whether it is a planned restart or a crash makes no difference (SM-134).
func (c *Confirmer) Try(ctx context.Context, row change.Row) error {
	nudged := c.listenFor(row.ID)
	defer c.listenNoMore(row.ID)
	watch := &vigil{}
	for {
		t, err := c.readUndecided(ctx, row)
		if err != nil {
			return err
		}
		at, err := c.Clock()
		if err != nil {
			return err
		}
		switch {
		case t.Handshake == trial.RolledBack:
			return c.takeBack(ctx, row, t)
		case t.Handshake == trial.Confirmed: // and finalized by the same transaction
			c.standDown(ctx, t)
			row, err := c.Row(ctx, row.ID)
			if err == nil {
				c.Tidy(c.Lasting(), row)
			}
			return err
		case t.Target.Host:
			err = trying{c}.tryHost(ctx, row, t, nudged, watch)
		case row.Request.Kind == request.Revert: // there is nothing to go back to
			err = c.comeUpHeld(ctx, row, t)
		case t.Expires.Left(at) == 0: // SM-133
			err = c.settleTrial(ctx, row, trial.TimeOut())
		case t.Handshake == trial.PendingRestart:
			c.Guard.ArmTrial(t, false)
			err = c.comeUp(ctx, row, t, nudged)
		default:
			c.Guard.ArmTrial(t, false)
			err = c.await(ctx, row, t, nudged, watch)
		}
		if ctx.Err() != nil {
			if c.Lasting().Err() != nil && !t.Target.Host { // asked to end: the keeper goes by the deadline alone
				c.Guard.ArmTrial(t, true)
			}
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, errDecided) {
			return err
		}
	}
}

// readUndecided returns the trial of a row that this step still holds.
func (c *Confirmer) readUndecided(ctx context.Context, row change.Row) (t trial.Trial, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		at, err := tx.Change(ctx, row.ID)
		if err != nil {
			return err
		}
		if at.Fence != row.Fence {
			return change.ErrMoved
		}
		var ok bool
		if t, ok, err = tx.Trial(ctx, row.ID); err == nil && !ok {
			err = fmt.Errorf("%s is %s without a trial", row.ID, row.State)
		}
		return err
	})
	return t, err
}

// until returns a context for what a trial waits for: it ends when somebody decides, when the time is over, and with ctx.
func (c *Confirmer) until(ctx context.Context, t trial.Trial, nudged <-chan struct{}) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-work.Done():
				return
			case <-nudged:
				cancel(errDecided) // or it was delivered: the row says which
			case <-tick.C:
				if at, err := c.Clock(); err != nil || t.Expires.Left(at) == 0 {
					cancel(errLate)
				}
			}
		}
	}()
	return work, func() { cancel(context.Canceled); <-done }
}

// lookEvery is how often a deadline is looked at: a machine may sleep in between, and timers do not count that.
const lookEvery = time.Second / 4

// comeUp restarts the target and waits until it answers, twice if it restarts at all (SM-917); then nobody is to be asked,
// or the person is. What does not come up goes back at once (SM-904).
func (c *Confirmer) comeUp(ctx context.Context, row change.Row, t trial.Trial, nudged <-chan struct{}) error {
	work, stop := c.until(ctx, t, nudged)
	defer stop()
	err := c.bringUp(work, row, &t)
	if work.Err() != nil {
		return nil // the row says why
	}
	stop()
	switch {
	case errors.Is(err, errDecided):
		return err
	case err != nil:
		return c.goBack(ctx, row, t, problem.Of(err).Text)
	case t.Length == 0:
		return c.keepUnasked(ctx, row, t)
	}
	return c.askToConfirm(ctx, row, t)
}

// bringUp restarts and probes as often as is wanted still, and counts in the row.
func (c *Confirmer) bringUp(ctx context.Context, row change.Row, t *trial.Trial) error {
	for !t.Target.None() && t.Restarts < t.RestartsWanted() {
		if err := c.startAgain(ctx, row, *t); err != nil {
			return err
		}
		next := *t
		next.Restarts++
		err := c.moveTrial(ctx, row, trial.PendingRestart, next, fmt.Sprintf("answered after restart %d", next.Restarts))
		if err != nil {
			return err
		}
		*t = next
	}
	return nil
}

// moveTrial writes what the step knows, with an audit entry; errDecided if a decision came first.
func (c *Confirmer) moveTrial(ctx context.Context, row change.Row, from trial.Handshake, to trial.Trial, verb string) error {
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.MoveTrial(ctx, from, to); err != nil {
			return err
		}
		return c.Append(ctx, tx, &change.Row{ID: row.ID}, ledger.Move{By: audit.Host, Subject: string(to.Landing)}, verb, ledger.Now())
	})
	if errors.Is(err, change.ErrMoved) {
		return fmt.Errorf("%w: %w", errDecided, err)
	}
	return err
}

// keepUnasked finalizes what answers and what nobody is to be asked about.
func (c *Confirmer) keepUnasked(ctx context.Context, row change.Row, t trial.Trial) error {
	reason := "the target answers, and no confirmation was asked for"
	if t.Target.None() {
		reason = "no confirmation was asked for"
	}
	return c.settleTrial(ctx, row, trial.Decision{To: trial.Confirmed, By: audit.Host, Reason: reason})
}

// goBack decides for the host that what is on trial goes back.
func (c *Confirmer) goBack(ctx context.Context, row change.Row, t trial.Trial, reason string) error {
	if t.Target.Host {
		return trying{c}.goBackHost(ctx, row, reason)
	}
	return c.settleTrial(ctx, row, trial.Decision{To: trial.RolledBack, By: audit.Host, Reason: reason})
}

// settleTrial writes the host's decision; errDecided if another came first.
func (c *Confirmer) settleTrial(ctx context.Context, row change.Row, d trial.Decision) error {
	at, err := c.Clock()
	if err != nil {
		return err
	}
	d.At = at.Wall
	var now change.Row
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if now, err = tx.Change(ctx, row.ID); err != nil {
			return err
		}
		t, ok, err := tx.Trial(ctx, row.ID)
		if err != nil || !ok {
			return errors.Join(err, change.ErrMoved)
		}
		return c.decideTrial(ctx, tx, &now, &t, d)
	})
	if errors.Is(err, change.ErrMoved) {
		return fmt.Errorf("%w: %w", errDecided, err)
	}
	if err == nil {
		c.Moved(now)
	}
	return err
}

// askToConfirm writes down that message 1 is out, then sends it, once (SM-121, SM-132).
func (c *Confirmer) askToConfirm(ctx context.Context, row change.Row, t trial.Trial) error {
	at, err := c.Clock()
	if err != nil {
		return err
	}
	t = t.Asked(at)
	if !t.Target.Host {
		c.Guard.ArmTrial(t, false) // first: its deadline may be nearer now
	}
	said := row
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if said, err = tx.Change(ctx, row.ID); err != nil {
			return err
		}
		said.Reason, said.Next = t.Question(), "sallyport confirm "+string(row.ID)
		if err := errors.Join(tx.MoveTrial(ctx, trial.PendingRestart, t), tx.MoveChange(ctx, said.State, said),
			c.Origin.ShowTrial(ctx, tx, said, t)); err != nil {
			return err
		}
		return c.Append(ctx, tx, &said, ledger.Move{By: audit.Host, Subject: string(t.Landing)}, "asked to confirm", ledger.Now())
	})
	if errors.Is(err, change.ErrMoved) {
		return fmt.Errorf("%w: %w", errDecided, err)
	}
	if err != nil {
		return err
	}
	c.Feed.Publish(Message1(t))
	c.Notify(ledger.Note{Change: row.ID, Kind: ledger.NoteTrial, Text: t.Question(), Next: said.Next}, func() { c.RecordDelivery(row.ID) })
	return nil
}

// Message1 is the notice that asks whoever watches.
func Message1(t trial.Trial) change.Notice {
	return change.Notice{Change: t.Change, At: ledger.Now(), Kind: "trial", State: change.InTrial, Text: t.Question()}
}

// RecordDelivery writes down that message 1 was delivered, which moves the deadline the first time (SM-125).
func (c *Confirmer) RecordDelivery(changeID id.Change) {
	ctx := c.Lasting()
	at, err := c.Clock()
	if err != nil {
		return
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		t, ok, err := tx.Trial(ctx, changeID)
		if err != nil || !ok {
			return err
		}
		heard := t.Heard(at)
		if heard == t {
			return nil
		}
		if err := tx.MoveTrial(ctx, trial.Message1Sent, heard); err != nil {
			return err
		}
		return c.Append(ctx, tx, &change.Row{ID: changeID}, ledger.Move{By: audit.Host, Subject: string(t.Landing)}, "message 1 delivered", ledger.Now())
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("the delivery of message 1 could not be recorded, so the deadline stays", "change", changeID, "error", err)
	}
	c.nudge(changeID)
}

// vigil is what is known of a target that answered once.
type vigil struct {
	misses int
	first  deadman.Moment // of the misses in a row
}

// miss counts a try that missed, and reports whether the target is to be taken for gone.
func (v *vigil) miss(at deadman.Moment, p trust.Probe) bool {
	if v.misses == 0 {
		v.first = at
	}
	v.misses++
	p = p.Filled()
	return v.misses >= trust.MissesMax || v.misses > 1 && at.Since(v.first) > p.Timeout+2*p.Every
}

// await waits for a person, or for the end of the time, and asks the target all the while. It returns when the row
// has to be looked at again.
func (c *Confirmer) await(ctx context.Context, row change.Row, t trial.Trial, nudged <-chan struct{}, v *vigil) error {
	work, stop := c.until(ctx, t, nudged)
	defer stop()
	if !t.Target.Asks() {
		<-work.Done()
		return nil
	}
	every := min(max(t.Target.Probe.Filled().Every, askEveryMin), askEveryMax)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-work.Done():
			return nil
		case <-tick.C:
		}
		err := c.ask(work, row, t)
		if work.Err() != nil {
			return nil
		}
		at, clock := c.Clock()
		switch {
		case err == nil:
			*v = vigil{}
		case clock != nil:
			return clock
		case v.miss(at, t.Target.Probe):
			stop()
			return c.goBack(ctx, row, t, "the target answered at first, then stopped answering: "+problem.Of(err).Text)
		}
	}
}

// How often a target on trial is asked.
const (
	askEveryMin = time.Second
	askEveryMax = 5 * time.Second
)

// comeUpHeld brings the old version up after a revert has landed, as often as it takes: there is no other version to go
// back to, so one that does not answer is rollback_failed, loudly, and tried again.
func (c *Confirmer) comeUpHeld(ctx context.Context, row change.Row, t trial.Trial) error {
	release, err := c.Guard.Hold(t.Landing)
	if err != nil {
		return err
	}
	defer release()
	if err = c.checkInPlace(ctx, row); err == nil {
		err = c.bringUp(ctx, row, &t)
	}
	if err == nil {
		return c.keepUnasked(ctx, row, t)
	}
	if ctx.Err() != nil || errors.Is(err, errDecided) {
		return err
	}
	release()
	c.Guard.Disarm(t.Landing)
	return c.failWayBack(ctx, row, t, fmt.Errorf("sallyport restored the old files, but the old version does not answer: %w", err))
}

func (c *Confirmer) listenFor(change id.Change) <-chan struct{} {
	nudged := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nudges[change] = nudged
	return nudged
}

func (c *Confirmer) listenNoMore(change id.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nudges, change)
}
