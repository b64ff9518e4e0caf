package supervise

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// sessionsMax is how many times an agent is started for one change before it is given up.
const sessionsMax = 3

// Work runs the agent to its end and judges what it left. A daemon that died under it finds the
// session without an exit: what there is is kept as a checkpoint, and the agent starts again on a
// copy as it was at its start, or, if it has kept what it knows, goes on with what it left. It starts again
// too when its tree could not be restored under it.
func (ss *Supervisors) Work(ctx context.Context, row change.Row) error {
	keep := ss.Lasting() // what a cancelled agent has done is judged too
	w, err := ss.Opener.Open(keep, row)
	if err != nil {
		return err
	}
	for {
		ws, err := ss.Workspaces.Open(keep, w.Judged())
		if err != nil {
			return err
		}
		sessions, err := ss.Sessions(keep, w.Row.ID)
		if err != nil {
			return err
		}
		last := session.Session{}
		if n := len(sessions); n > 0 {
			last = sessions[n-1]
		}
		if w.Row.Swap != nil { // and what came of its session afterwards says nothing
			return ss.judgeSwap(ctx, w.Row, last)
		}
		if last.Exit != nil {
			return ss.judgeLast(ctx, w, ws, last)
		}
		if last.ID != "" { // it never ran, or its end is not known, or it is to go on
			if ws, err = ss.startOver(ctx, w, ws, last, sessions); err != nil {
				return err
			}
		}
		if last.Attempt >= sessionsMax*(1+w.Row.Resumes) {
			return problem.Errorf(problem.AgentFailed, "sallyport change log "+string(w.Row.ID),
				"the agent was interrupted %d times, so sallyport does not start it again", last.Attempt)
		}
		err = ss.runAgent(ctx, &w, ws, last, sessions)
		if errors.Is(err, credential.ErrMissing) {
			return ss.waitForKey(ctx, w, err)
		}
		if live.Unaffordable(err) {
			return ss.waitForBudget(ctx, w.Row, err)
		}
		if err != nil {
			return err
		}
		if w, err = ss.Opener.Anew(keep, w); err != nil { // what its end is judged by is what the rules are then
			return err
		}
	}
}

// startOver keeps what a session left that did not come to its end, under a ref, and gives a copy
// that is as it was at the session's start; one that goes on gets what it left.
func (ss *Supervisors) startOver(ctx context.Context, w work.Work, ws workspace.Workspace, last session.Session,
	all []session.Session) (workspace.Workspace, error) {
	row := w.Row
	if !last.ToGoOn() {
		left, err := ss.Takes.Take(ctx, w, ws, Taking{Why: checkpoint.Interrupted, Session: last.ID, Since: last.Started})
		if err != nil {
			return ws, fmt.Errorf("keep what %s left: %w", last.ID, err)
		}
		if err := ss.interrupt(ctx, row, last); err != nil {
			return ws, err
		}
		if ss.goesOn(row, last, all) {
			return ss.goOn(ctx, w, ws, left.Checkpoint)
		}
	}
	if row.From == "" {
		return ss.Workspaces.MakeAnew(ctx, ws.Spec)
	}
	return ss.Workspaces.Renew(ctx, ws.Spec, w.Host, git.OID(row.From))
}

// runAgent starts one session and waits for its end, which is written before anything is judged.
// One that is to be started again is left without an exit.
func (ss *Supervisors) runAgent(ctx context.Context, w *work.Work, ws workspace.Workspace, last session.Session, all []session.Session) error {
	leave, waited, err := ss.Runtime.Place(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if waited { // for hours, maybe
		if *w, err = ss.Opener.Anew(ctx, *w); err != nil {
			return err
		}
	}
	defer ss.Meter.SessionRuns()()
	run, err := ss.ready(ctx, *w, ws, last, all)
	if err != nil {
		return err
	}
	defer run.Way.Close()
	leaveDesk, err := ss.seat(ctx, w.Row, &run)
	if err != nil {
		return err
	}
	defer leaveDesk()
	s := run.Session
	if err := ss.recordStart(ctx, &w.Row, s); err != nil {
		return err
	}
	if run.Program.Keeps {
		if err := ss.takeHome(ctx, w.Row.ID, s); err != nil {
			return err
		}
	}

	stop := ss.report(ctx, w.Row.ID, ws, &run)
	told, err := ss.tellRedo(ctx, w.Row, last, &run)
	if err != nil {
		stop()
		return err
	}
	exit, again, err := ss.supervise(ctx, w, ws, &run)
	stop()
	told()
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), ledger.ErrCancelled) {
		return context.Cause(ctx) // killed by us, not ended: the next daemon salvages it
	}

	keep, ended := ss.Lasting(), ledger.Now()
	s.Ended = &ended
	if again && ctx.Err() == nil {
		s.Interrupted, s.Reason = session.NotRestored, notRestored
		return ss.DB.InTx(keep, func(tx store.Tx) error { return tx.PutSession(keep, s) })
	}
	if err != nil { // it did not run, or not all of it is recorded: neither is an end to judge
		s.Interrupted, s.Reason = session.NotRun, "the session did not run to its end"
		_ = ss.DB.InTx(keep, func(tx store.Tx) error { return tx.PutSession(keep, s) })
		return fmt.Errorf("run the agent: %w", err)
	}
	s.Exit, s.Reason = &exit, run.Session.Reason
	return ss.recordEnd(keep, w.Row, s)
}

// recordStart writes down that a session begins.
func (ss *Supervisors) recordStart(ctx context.Context, row *change.Row, s session.Session) error {
	return ss.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutSession(ctx, s); err != nil {
			return err
		}
		return ss.Append(ctx, tx, row, ledger.Move{By: audit.Host, Subject: string(s.ID)}, "started", s.Started)
	})
}

// recordEnd writes down how a session has ended.
func (ss *Supervisors) recordEnd(ctx context.Context, row change.Row, s session.Session) error {
	row.Reason = s.Ending()
	return ss.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutSession(ctx, s); err != nil {
			return err
		}
		return ss.Append(ctx, tx, &row, ledger.Move{By: audit.Actor{Kind: "agent", Name: string(s.ID), UID: -1}, Subject: string(s.ID)}, "ended", *s.Ended)
	})
}
