package confirm

import (
	"context"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// Confirm keeps what is on trial. The decision and the move are one transaction, so confirmed is finalized.
func (c *Confirmer) Confirm(ctx context.Context, change id.Change, by audit.Actor, code string) error {
	return c.answer(ctx, change, trial.Confirmed, by, "", code)
}

// RollBack has what is on trial go back at once (SM-123).
func (c *Confirmer) RollBack(ctx context.Context, changeID id.Change, by audit.Actor, reason string) error {
	if reason = request.FirstLine(reason); reason == "" {
		reason = "asked for by " + by.Name
	}
	return c.answer(ctx, changeID, trial.RolledBack, by, reason, "")
}

// answer writes a person's decision on a trial, if it is the first one and comes in time.
func (c *Confirmer) answer(ctx context.Context, changeID id.Change, to trial.Handshake, by audit.Actor, reason, code string) error {
	at, err := c.Clock()
	if err != nil {
		return err
	}
	if row, t, err := (trying{c}).rowAndTrial(ctx, changeID, by); err != nil {
		return err
	} else if t.Target.Host && !t.Handshake.Decided() {
		if heard, err := (trying{c}).answerHost(ctx, row, t, to, by, reason, code); heard || err != nil {
			return err
		}
	}
	d := trial.Decision{To: to, By: by, At: at.Wall, Reason: reason}
	var row change.Row
	var t trial.Trial
	var refused error
	moved := false
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		refused, moved = nil, false
		var ok bool
		var err error
		if row, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if err := c.mayEnd(ctx, tx, row, by); err != nil {
			return err
		}
		if t, ok, err = tx.Trial(ctx, changeID); err != nil {
			return err
		}
		switch show := "sallyport change show " + string(changeID); {
		case !ok:
			refused = problem.Errorf(problem.Conflict, show, "%s is %s: only a change on trial can be confirmed", changeID, row.State.Words())
		case t.Handshake == to:
			return nil // said already; saying it again changes nothing
		case t.Handshake.Decided():
			refused = problem.Errorf(problem.Conflict, show, "%s", Overtaken(changeID, t))
		case t.Expires.Left(at) == 0 && !t.Target.Host: // also if nobody has noticed yet
			if to == trial.Confirmed {
				refused = problem.Errorf(problem.Conflict, show, "the time to confirm %s is over: sallyport rolls it back", changeID)
			}
			d, moved = trial.TimeOut(), true
			d.At = at.Wall
		case to == trial.Confirmed && t.Handshake == trial.PendingRestart:
			refused = problem.Errorf(problem.Conflict, "sallyport change watch "+string(changeID),
				"%s cannot be confirmed yet: its target is being restarted and has not answered", changeID)
		default:
			moved = true
		}
		if !moved {
			return nil
		}
		return c.decideTrial(ctx, tx, &row, &t, d)
	})
	if err != nil {
		return err
	}
	if moved {
		c.Moved(row)
		c.nudge(changeID)
	}
	if moved && d.To == trial.Confirmed {
		c.endTrial(row, t)
	}
	return refused
}

// mayEnd refuses somebody who has nothing to do with what is on trial (SM-140).
func (c *Confirmer) mayEnd(ctx context.Context, tx store.Tx, row change.Row, by audit.Actor) error {
	tried, err := ledger.Tried(ctx, tx, row)
	if err == nil && tried.EndedBy(ledger.PartyOf(by)) == "" {
		err = problem.Case(person.ErrNotOwner, "sallyport change show "+string(row.ID),
			"only who approved %[1]s, who asked for it, or the owner of this home may confirm %[1]s or roll it back, and %[2]q is none of them", row.ID, by.Name)
	}
	return err
}

// endTrial clears up after a trial whose change is finalized, when its step has returned, or if none ran: an armed
// keeper would take a daemon that has nothing left to do for one that hangs.
func (c *Confirmer) endTrial(row change.Row, t trial.Trial) {
	leave, err := c.Works.Take(c.Lasting(), row.ID)
	if err != nil {
		return // the daemon ends, and the next one finds nothing on trial
	}
	defer leave()
	c.standDown(c.Lasting(), t)
	c.Tidy(c.Lasting(), row)
}

// standDown has no keeper wait for the end of a trial that is confirmed.
func (c *Confirmer) standDown(ctx context.Context, t trial.Trial) {
	c.Guard.Disarm(t.Landing)
	if !t.Target.Host {
		return
	}
	if err := c.Host.Finalized(ctx, t.Change); err != nil {
		c.Log.Warn("the keeper was not told that the change of the host is kept; the next start tells it", "change", t.Change, "error", err)
	}
}

// Overtaken says what won.
func Overtaken(change id.Change, t trial.Trial) string {
	switch {
	case t.Handshake == trial.Confirmed && t.By.Kind == audit.Host.Kind:
		return fmt.Sprintf("sallyport has kept %s already: %s", change, t.Reason)
	case t.Handshake == trial.Confirmed:
		return fmt.Sprintf("%s has confirmed %s already", t.By.Name, change)
	case t.By.Kind == audit.Host.Kind:
		return fmt.Sprintf("sallyport has decided already to roll %s back: %s", change, t.Why())
	}
	return fmt.Sprintf("%s has decided already to roll %s back", t.By.Name, change)
}

// decideTrial writes a trial's end and its audit entry. What is confirmed is finalized by the same transaction; what is
// to go back stays in trial until it has gone back.
func (c *Confirmer) decideTrial(ctx context.Context, tx store.Tx, row *change.Row, t *trial.Trial, d trial.Decision) error {
	d.At, d.Reason = d.At.UTC().Truncate(time.Millisecond), c.Secrets.Redact(d.Reason)
	if err := tx.DecideTrial(ctx, row.ID, d); err != nil {
		return err
	}
	*t = t.Decide(d)
	if d.To == trial.RolledBack {
		row.Reason, row.Next = "sallyport rolls it back: "+d.Why(), "sallyport change watch "+string(row.ID)
		if err := tx.MoveChange(ctx, row.State, *row); err != nil {
			return err
		}
		said := *row
		said.Reason = d.Why()
		return c.Append(ctx, tx, &said, ledger.Move{By: d.By, Subject: string(t.Landing)}, "rollback decided", d.At)
	}
	l, err := ledger.LandingNamed(ctx, tx, t.Landing)
	if err != nil {
		return err
	}
	reason := d.Reason
	if reason == "" {
		reason = "confirmed by " + d.By.Name
	}
	return c.KeepLanding(ctx, tx, row, l, ledger.Move{Event: change.Kept, By: d.By, Verb: "confirmed", Subject: string(l.ID), Reason: reason})
}

// nudge has the step of a trial look at its row again; without a step nothing is lost.
func (c *Confirmer) nudge(change id.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.nudges[change] <- struct{}{}: // nil is never ready
	default:
	}
}
