package control

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/store"
)

// Approve records by's yes to exactly the digest they read, and makes the landing due: all
// of it commits or none. Errors: person.ErrNotOwner (denied), proposal.ErrSuperseded,
// approval.ErrDecided (conflict), not_found. Saying the same again changes nothing and is no error.
func (c *Controller) Approve(ctx context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, via string) error {
	return c.ApproveAs(ctx, ref, read, by, Words{Via: via})
}

// Words are what comes with a yes.
type Words struct {
	Via      string // how it reached us
	Message  string // what the commit is to say, its first line the subject; "" = what the card shows
	Unsigned bool   // it may land unsigned where the repository would have it signed
	Marked   bool   // it covers what is marked on the card
}

// ApproveAs is Approve with what the person has the commit say.
func (c *Controller) ApproveAs(ctx context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, w Words) error {
	if err := c.secretIn(ctx, "sallyport approve --help", "--message", w.Message); err != nil {
		return err
	}
	err := c.decide(ctx, ref, func(tx store.Tx, row *change.Row) error {
		return c.approve(ctx, tx, row, ref, read, by, w)
	})
	if errors.Is(err, approval.ErrSaid) {
		return nil
	}
	return err
}

// approve is Approve within a transaction.
func (c *Controller) approve(ctx context.Context, tx store.Tx, row *change.Row, ref id.Approval, read proposal.Digest, by audit.Actor, w Words) error {
	p, ok, err := tx.Proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if !ok {
		return problem.Errorf(problem.NotFound, "sallyport change show "+string(row.ID), "%s has no proposal", row.ID)
	}
	if p.Card.MarksWord && !w.Marked {
		return unsaid(row.ID, p)
	}
	if err := approval.Record(ctx, tx, approval.Saying{ID: ref, Read: read, Current: p, Owner: c.Owner, By: by, Via: w.Via, At: ledger.Now(), Message: w.Message, Unsigned: w.Unsigned}); err != nil {
		return err
	}
	return c.Move(ctx, tx, row, ledger.Move{Event: change.Approved, By: by, Subject: string(ref), Reason: w.said(), Digests: digests(p)})
}

// said is what the audit keeps of the words.
func (w Words) said() string {
	said := w.Via
	if said == approval.ViaCommandLine {
		said = "approved on the command line"
	}
	if w.Marked {
		said += ", marks included"
	}
	if w.Unsigned {
		said += ", may land unsigned"
	}
	if w.Message != "" {
		said += ", to be committed as: " + w.Message
	}
	return said
}

// unsaid refuses a yes that does not cover what is marked.
func unsaid(change id.Change, p proposal.Proposal) error {
	m := p.Card.Marks[0]
	more := ""
	if p.Card.MarksTotal > 1 {
		more = fmt.Sprintf(" (and %d more)", p.Card.MarksTotal-1)
	}
	return problem.Case(approval.ErrMarked, "sallyport approve "+string(change)+" --marked", "the card of %s has marks, and a yes has to say that it covers them (--marked): %s: %s%s",
		change, inert.Path(m.Path), m.Says, more)
}

// Refuse records by's no; the change ends, and its work stays under its refs.
func (c *Controller) Refuse(ctx context.Context, ref id.Approval, by audit.Actor, reason string) error {
	var ended change.Row
	err := c.decide(ctx, ref, func(tx store.Tx, row *change.Row) error {
		if err := approval.Refuse(ctx, tx, ref, c.Owner, by, c.Secrets.Redact(reason), ledger.Now()); err != nil {
			return err
		}
		err := c.Move(ctx, tx, row, ledger.Move{Event: change.Refused, By: by, Subject: string(ref), Reason: reason})
		ended = *row
		return err
	})
	switch {
	case errors.Is(err, approval.ErrSaid):
		return nil
	case err == nil:
		c.tidyApart(c.Lasting(), ended)
	}
	return err
}

// decide runs a decision on the change that an approval belongs to.
func (c *Controller) decide(ctx context.Context, ref id.Approval, do func(tx store.Tx, row *change.Row) error) error {
	var row change.Row
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		a, err := tx.Approval(ctx, ref)
		if err != nil {
			return err
		}
		if row, err = tx.Change(ctx, a.Change); err != nil {
			return err
		}
		return do(tx, &row)
	})
	if err == nil {
		c.Moved(row)
	}
	return err
}

// Confirm keeps what is on trial.
func (c *Controller) Confirm(ctx context.Context, change id.Change, by audit.Actor) error {
	return c.confirm.Confirm(ctx, change, by)
}

// Cancel withdraws a change. A step that is under way is stopped; what it had is kept.
// What is in the journal of landings is not stopped in the middle, and what has ended stays as it is (conflict).
func (c *Controller) Cancel(ctx context.Context, changeID id.Change, by audit.Actor, reason string) error {
	if err := c.Owner.MayDecide(by); err != nil {
		return err
	}
	moves := c.Feed.Subscribe(changeID) // before it can move, so that the move is not missed
	defer c.Feed.Unsubscribe(moves)
	said := &ledger.Withdrawn{By: by, Reason: reason}
	for {
		stopping, err := c.cancel(ctx, changeID, said)
		if err != nil || !stopping {
			return err
		}
		if err := c.untilMoved(ctx, moves); err != nil {
			return err
		}
		if row, err := c.Row(ctx, changeID); err != nil || row.State.Final() {
			return err
		} // its step was done before it heard of it: from where it stands now, again
	}
}

// cancel withdraws a change that no step holds, or stops the step that does.
func (c *Controller) cancel(ctx context.Context, changeID id.Change, said *ledger.Withdrawn) (stopping bool, err error) {
	var row change.Row
	held, event := false, change.Cancel
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		var err error
		if row, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if event, err = c.Withdrawal(ctx, tx, row); err != nil {
			return err
		}
		if held = row.Holder != ""; !held {
			return c.Withdraw(ctx, tx, &row, event, *said)
		}
		if event == change.Cancel { // a way back is given up by who is there to see it
			if err := tx.RequestCancel(ctx, changeID); err != nil {
				return err
			}
		}
		row.Reason = said.Reason
		return c.Append(ctx, tx, &row, ledger.Move{By: said.By}, "asked to cancel", ledger.Now())
	})
	if err != nil {
		return false, err
	}
	if !held {
		c.Moved(row)
		c.land.StandDown(ctx, row)
		c.tidyApart(c.Lasting(), row)
		return false, nil
	}
	c.mu.Lock()
	stop := c.cancels[changeID]
	c.mu.Unlock()
	if stop == nil {
		if event == change.GivenUp {
			return false, problem.Errorf(problem.Unavailable, "sallyport change show "+string(changeID), "sallyport is just trying to roll %s back: cancel again once that try is over", changeID)
		}
		return false, nil // another daemon's life held it: the next step finds the request
	}
	stop(said)
	return true, nil
}

// untilMoved waits until a change has moved.
func (c *Controller) untilMoved(ctx context.Context, moves *change.Subscription) error {
	for queue := c.Feed.Next(ctx, moves); queue != nil; queue = c.Feed.Next(ctx, moves) {
		for _, n := range queue {
			if n.Kind == "state" {
				return nil
			}
		}
	}
	return context.Cause(ctx)
}
