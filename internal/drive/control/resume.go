package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/redo"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// ResumeSession lets the agent of a session go on: at once if it stands, else in a new run with
// its identity and its transcript, on its last tree.
func (c *Controller) ResumeSession(ctx context.Context, identity id.Session, by audit.Actor, keys credential.Keys) (row change.Row, err error) {
	if err := c.Owner.MayDecide(by); err != nil {
		return change.Row{}, err
	}
	s, row, err := c.sessionOf(ctx, identity)
	if err != nil {
		return change.Row{}, err
	}
	if _, err := session.ReadMetadata(c.Runtime.Dir(s.ID)); err != nil {
		return change.Row{}, err
	}
	if row.Request.Kind == request.Swap && !c.Standing(row.ID) { // before anything is wanted for it
		if _, err := takesUp(row); err != nil {
			return change.Row{}, err
		}
	}
	if err := c.mayResume(ctx, row.ID); err != nil {
		return change.Row{}, err
	}
	if err := c.Requests.Receive(row.ID, row.Request, keys); err != nil {
		return change.Row{}, err
	}
	defer func() {
		if err != nil {
			c.Requests.ForgetEnded(ctx, s.Change)
		}
	}()
	if c.Standing(row.ID) {
		if err := c.Resume(ctx, row.ID, by); err != nil {
			return change.Row{}, err
		}
		return c.Row(ctx, row.ID)
	}
	if _, named, err := c.outfits.Known(row.Request.Agent); err != nil || named {
		if err == nil {
			_, err = c.Requests.Runnable(row.ID, row.Request, "sallyport resume "+string(identity))
		}
		if err != nil {
			return change.Row{}, err
		}
	}
	from, err := c.lastTree(ctx, row)
	if err == nil && from != "" {
		_, err = c.Holding(ctx, row, git.OID(from))
	}
	if err != nil {
		return change.Row{}, err
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if row, err = tx.Change(ctx, s.Change); err != nil {
			return err
		}
		event, err := takesUp(row)
		if err != nil {
			return err
		}
		if _, tried, err := tx.Trial(ctx, row.ID); err != nil {
			return err
		} else if tried { // and was left as it stands
			return problem.Errorf(problem.Conflict, "sallyport change show "+string(row.ID), "%s has landed: there is nothing to resume", row.ID)
		}
		return c.Redos.TakeUp(ctx, tx, &row, s, session.Resumed, from, ledger.Move{Event: event, By: by, Verb: "resumed", Subject: string(s.ID)})
	})
	if err == nil {
		c.Moved(row)
	}
	return row, err
}

// sessionOf is a session with the change that it works at.
func (c *Controller) sessionOf(ctx context.Context, identity id.Session) (s session.Session, row change.Row, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		if s, err = tx.Session(ctx, identity); err != nil {
			return err
		}
		row, err = ledger.ChangeOf(ctx, tx, s)
		return err
	})
	return s, row, err
}

// takesUp is the event that brings a change back to work. Errors: conflict, saying why it cannot.
func takesUp(row change.Row) (change.Event, error) {
	show := "sallyport change show " + string(row.ID)
	if !row.Request.Worked() || row.Base == "" {
		return "", problem.Errorf(problem.Conflict, show, "%s has no agent to resume", row.ID)
	}
	swap := row.Request.Kind == request.Swap
	switch row.State {
	case change.Paused, change.Blocked:
		return change.Resume, nil
	case change.Failed, change.Cancelled, change.Rejected:
		if swap {
			return "", redo.AskAnew(row)
		}
		return change.Again, nil
	case change.AwaitingApproval:
		if swap {
			return "", redo.AskAnew(row)
		}
		return "", problem.Errorf(problem.Conflict, "sallyport refuse "+string(row.ID)+` --reason "…"`,
			"%s waits for your answer: refuse it, then resume it", row.ID)
	}
	return "", problem.Errorf(problem.Conflict, show, "%s is %s: there is nothing to resume", row.ID, row.State.Words())
}

// lastTree is the commit of a change's last checkpoint on its base; without one what it was to start from, "" for the base.
func (c *Controller) lastTree(ctx context.Context, row change.Row) (string, error) {
	all, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return "", err
	}
	if n := len(all); n > 0 && all[n-1].Base == git.OID(row.Base) {
		return string(all[n-1].Commit), nil
	}
	return row.From, nil
}

// Resume lets a paused or blocked change go on: its agent where it stands, or, if that was lost
// with its daemon, a new session.
func (c *Controller) Resume(ctx context.Context, changeID id.Change, by audit.Actor) error {
	if err := c.Owner.MayDecide(by); err != nil {
		return err
	}
	at, err := c.Row(ctx, changeID)
	if err == nil {
		err = c.stillLacking(ctx, at)
	}
	if err != nil {
		return err
	}
	if stood, err := c.GoOn(ctx, changeID, by); stood {
		return err
	}
	var row change.Row
	err = c.DB.InTx(ctx, func(tx store.Tx) (err error) {
		if row, err = tx.Change(ctx, changeID); err != nil {
			return err
		}
		if _, err := row.State.Next(change.Resume); err != nil {
			next, err := redo.Onward(ctx, tx, row)
			if err != nil {
				return err
			}
			return problem.Errorf(problem.Conflict, next, "%s is %s: only a change that is paused or blocked can be resumed", changeID, row.State.Words())
		}
		return c.Move(ctx, tx, &row, ledger.Move{Event: change.Resume, By: by})
	})
	if err == nil {
		c.Moved(row)
	}
	return err
}

// mayResume refuses a mode that a person wrote into the notes and that a plain command cannot have (SV-001, SV-002).
func (c *Controller) mayResume(ctx context.Context, change id.Change) error {
	deterministic, err := c.Notebook.Deterministic(ctx, change)
	if err != nil {
		return err
	}
	if deterministic {
		return problem.Errorf(problem.Usage, "sallyport change show "+string(change),
			"the state.md of %s says execution_mode: deterministic, which its agent, a plain command, cannot do: remove that line", change)
	}
	return nil
}
