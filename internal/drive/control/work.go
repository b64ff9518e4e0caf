package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/submit"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// sessionsMax is how many times an agent is started for one change before it is given up.
const sessionsMax = 3

// work runs the agent to its end and judges what it left. A daemon that died under it finds the
// session without an exit: what there is is kept as a checkpoint, and the agent starts again on a
// copy as it was at its start, or, if it has kept what it knows, goes on with what it left. It starts again
// too when its tree could not be restored under it.
func (c *Controller) work(ctx context.Context, row change.Row) error {
	keep := c.Lasting() // what a cancelled agent has done is judged too
	for {
		w, err := c.opener.Open(keep, row)
		if err != nil {
			return err
		}
		ws, err := c.Workspaces.Open(keep, w.Judged())
		if err != nil {
			return err
		}
		sessions, err := c.Sessions(keep, row.ID)
		if err != nil {
			return err
		}
		last := session.Session{}
		if n := len(sessions); n > 0 {
			last = sessions[n-1]
		}
		if last.Exit != nil {
			return c.judgeLast(ctx, row, ws, last)
		}
		if last.ID != "" { // it never ran, or its end is not known, or it is to go on
			if ws, err = c.startOver(ctx, row, ws, last, sessions); err != nil {
				return err
			}
		}
		if last.Attempt >= sessionsMax*(1+row.Resumes) {
			return problem.Errorf(problem.AgentFailed, "sallyport change log "+string(row.ID), "the agent was interrupted %d times, so sallyport does not start it again", last.Attempt)
		}
		err = c.runAgent(ctx, &row, ws, last, sessions)
		if errors.Is(err, credential.ErrMissing) {
			return c.waitForKey(ctx, row, err)
		}
		if live.Unaffordable(err) {
			return c.waitForBudget(ctx, row, err)
		}
		if err != nil {
			return err
		}
	}
}

// startOver keeps what a session left that did not come to its end, under a ref, and gives a copy
// that is as it was at the session's start; one that goes on gets what it left.
func (c *Controller) startOver(ctx context.Context, row change.Row, ws workspace.Workspace, last session.Session, all []session.Session) (workspace.Workspace, error) {
	if !last.ToGoOn() {
		left, err := c.take(ctx, row, ws, taking{why: checkpoint.Interrupted, session: last.ID, since: last.Started})
		if err != nil {
			return ws, fmt.Errorf("keep what %s left: %w", last.ID, err)
		}
		if err := c.interrupt(ctx, row, last); err != nil {
			return ws, err
		}
		if c.goesOn(row, last, all) {
			return c.goOn(ctx, row, ws, left.Checkpoint)
		}
	}
	if row.From == "" {
		return c.Workspaces.Fresh(ctx, ws.Spec)
	}
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
		return ws, err
	}
	return c.Workspaces.Renew(ctx, ws.Spec, host, git.OID(row.From))
}

// runAgent starts one session and waits for its end, which is written before anything is judged.
// One that is to be started again is left without an exit.
func (c *Controller) runAgent(ctx context.Context, row *change.Row, ws workspace.Workspace, last session.Session, all []session.Session) error {
	here := c.Meter.SessionWaits()
	defer func() { here() }()
	select { // one place per agent that may work at once (SV-095)
	case c.places <- struct{}{}:
		defer func() { <-c.places }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	here()
	here = c.Meter.SessionRuns()
	run, mode, err := c.running(ctx, *row, ws, last, all)
	if err != nil {
		return err
	}
	defer run.Way.Close()
	s := run.Session
	if err := c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutSession(ctx, s); err != nil {
			return err
		}
		return c.Append(ctx, tx, row, ledger.Move{By: audit.Host, Subject: string(s.ID)}, "started", s.Started)
	}); err != nil {
		return err
	}
	if run.Program.Keeps {
		if err := c.takeHome(ctx, row.ID, s); err != nil {
			return err
		}
	}
	stop := c.report(ctx, row.ID, ws, &run)
	told, err := c.tellRedo(ctx, *row, last, &run)
	if err != nil {
		stop()
		return err
	}
	exit, again, err := c.supervise(ctx, row, ws, &run, mode)
	stop()
	told()
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ledger.ErrCancelled) {
		return context.Cause(ctx) // killed by us, not ended: the next daemon salvages it
	}
	keep := c.Lasting()
	ended := ledger.Now()
	s.Ended = &ended
	if again && ctx.Err() == nil {
		s.Interrupted, s.Reason = session.NotRestored, notRestored
		return c.DB.InTx(keep, func(tx store.Tx) error { return tx.PutSession(keep, s) })
	}
	if err != nil { // it did not run, or not all of it is recorded: neither is an end to judge
		s.Interrupted, s.Reason = session.NotRun, "the session did not run to its end"
		_ = c.DB.InTx(keep, func(tx store.Tx) error { return tx.PutSession(keep, s) })
		return fmt.Errorf("run the agent: %w", err)
	}
	s.Exit, s.Reason = &exit, run.Session.Reason
	return c.DB.InTx(keep, func(tx store.Tx) error {
		if err := tx.PutSession(keep, s); err != nil {
			return err
		}
		reason := *row
		reason.Reason = session.Describe(exit)
		if s.Reason != "" {
			reason.Reason += ": " + s.Reason
		}
		return c.Append(keep, tx, &reason, ledger.Move{By: audit.Actor{Kind: "agent", Name: string(s.ID), UID: -1}, Subject: string(s.ID)}, "ended", ended)
	})
}

// judgeLast takes the last checkpoint and moves the change by what it holds. Work of an
// agent that failed, or was withdrawn, is kept all the same.
func (c *Controller) judgeLast(ctx context.Context, row change.Row, ws workspace.Workspace, last session.Session) error {
	keep := c.Lasting()
	var taken checkpoint.Taken
	err := c.gate.pass(keep, true, func() (err error) {
		taken, err = c.take(keep, row, ws, taking{why: checkpoint.AtEnd, session: last.ID, since: last.Started})
		return err
	})
	if err != nil {
		return fmt.Errorf("take the last checkpoint: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cp, edits := taken.Checkpoint, len(taken.Edits)
	m := ledger.Move{Event: change.Ended, By: audit.Host, Subject: string(cp.ID), Verb: "checked"}
	if cp.Status != checkpoint.Valid && last.Exit.Code == 0 && last.Exit.Limit == nil {
		fallen, err := c.fallBack(ctx, row, cp)
		if err != nil {
			return err
		}
		if fallen != nil {
			m.Reason = judge.Refusal(row, cp.Violations).Error() + "; the last valid checkpoint before that is proposed instead"
			cp, edits = *fallen, fallen.Total()
		}
	}
	w, err := c.opener.Open(ctx, row)
	if err != nil {
		return err
	}
	m.Digests = map[string]string{"tree": string(cp.Tree)}
	switch {
	case last.Exit.Code != 0 || last.Exit.Limit != nil:
		m.Event, m.Because = change.Fail, problem.Errorf(problem.AgentFailed, "sallyport change log "+string(row.ID), "%s", gaveUp(last))
	case cp.Status != checkpoint.Valid:
		m.Event, m.Because = change.Fail, judge.Refusal(row, cp.Violations)
	case edits == 0 && len(w.Checks()) == 0:
		m = submit.Idled(row, cp)
	}
	row, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		row.Chosen = cp.ID
		return c.Move(ctx, tx, row, m)
	})
	if err != nil {
		return err
	}
	if m.Event != change.Ended {
		c.tidy(c.Lasting(), row)
	}
	return nil
}

// gaveUp says why an agent's work is not judged: it says so itself, or how it ended does.
func gaveUp(s session.Session) string {
	if s.Reason != "" && s.Exit.Limit == nil {
		return "the agent gave up: " + s.Reason
	}
	return session.Describe(*s.Exit)
}

// fallBack finds what is offered in the place of an invalid last checkpoint: under a shadow the
// last valid one, if it changes anything; nothing otherwise (SV-031).
func (c *Controller) fallBack(ctx context.Context, row change.Row, last checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	mode, err := c.judge.Mode(ctx, row)
	if err != nil || mode.Strategy != session.Shadow {
		return nil, err
	}
	all, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	for _, cp := range slices.Backward(all) {
		if cp.Number < last.Number && cp.Status == checkpoint.Valid && cp.Base == last.Base {
			if cp.Total() == 0 {
				return nil, nil
			}
			return &cp, nil
		}
	}
	return nil, nil
}

// taking says why a checkpoint is taken, and of which session.
type taking struct {
	why     checkpoint.Trigger
	session id.Session
	since   time.Time // the session's start
	live    bool      // the session runs; it stands while this is taken
}

// take takes one checkpoint and records it.
func (c *Controller) take(ctx context.Context, row change.Row, ws workspace.Workspace, t taking) (checkpoint.Taken, error) {
	host, judging, err := c.judge.Grounds(ctx, row)
	if err != nil {
		return checkpoint.Taken{}, err
	}
	before, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return checkpoint.Taken{}, err
	}
	var previous *checkpoint.Checkpoint
	if n := len(before); n > 0 {
		previous = &before[n-1]
	}
	if !t.live && previous != nil && previous.Session == t.session && previous.Trigger == t.why && previous.Base == ws.Spec.Base && !previous.At.Before(t.since) {
		// It is recorded: a crash came before the move that follows it.
		edits, err := host.Edits(ctx, previous.Base, previous.Commit)
		return checkpoint.Taken{Checkpoint: *previous, Edits: edits}, err
	}
	mode := judging.Watch(row.Request)
	taken, err := checkpoint.Take(ctx, checkpoint.Taking{
		Workspaces: c.Workspaces, Workspace: ws, Host: host, Previous: previous,
		Trigger: t.why, Session: t.session, At: ledger.Now(), Author: c.Settings.Author,
		Plan: judge.Plan(row.Request), Rules: judging.Rules, Secrets: judging.Secrets,
		IncludeIgnored: slices.Concat(row.Request.IncludeIgnored, judging.IncludeIgnored),
		Floor:          mode.Floor, Unjudged: t.live && mode.Unvalidated && t.why != checkpoint.TurnEnded,
		Load: c.judge.Loading(row, ws.Spec.Base), Meter: c.Meter,
	})
	if err != nil {
		return checkpoint.Taken{}, err
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.AddCheckpoint(ctx, taken.Checkpoint); err != nil {
			return err
		}
		return c.Append(ctx, tx, &change.Row{ID: row.ID}, ledger.Move{ // why the row stands where it does, such as a pause, is not why this was taken
			By: audit.Host, Subject: string(taken.Checkpoint.ID),
			Digests: map[string]string{"commit": string(taken.Checkpoint.Commit), "tree": string(taken.Checkpoint.Tree), "base": row.Base},
		}, "checkpointed: "+string(taken.Checkpoint.Status), taken.Checkpoint.At)
	})
	if err == nil {
		c.Feed.Publish(change.Notice{Change: row.ID, At: taken.Checkpoint.At, Kind: "checkpoint", Checkpoint: &taken.Checkpoint})
		c.note(ctx, row.ID)
	}
	return taken, err
}

// setLive remembers who watches the running session of a change; nil forgets it.
func (c *Controller) setLive(change id.Change, s *supervisor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == nil {
		delete(c.live, change)
		return
	}
	c.live[change] = s
}

// watching returns who watches the running session of a change; nil if none runs.
func (c *Controller) watching(change id.Change) *supervisor {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live[change]
}
