package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sallyport/internal/audit"
	"sallyport/internal/checkpoint"
	"sallyport/internal/git"
	"sallyport/internal/id"
	"sallyport/internal/policy"
	"sallyport/internal/problem"
	"sallyport/internal/session"
	"sallyport/internal/store"
	"sallyport/internal/workspace"
)

// sessionsMax is how many times an agent is started for one change before it is given up.
const sessionsMax = 3

// work runs the agent to its end and judges what it left. A daemon that died under it
// finds the session's row open: what there is is kept as a checkpoint, and the agent
// starts again on a fresh copy.
func (c *Controller) work(ctx context.Context, row store.Change) error {
	ws, err := c.Workspaces.Open(ctx, c.spec(row))
	if err != nil {
		return err
	}
	sessions, err := c.sessions(ctx, row.ID)
	if err != nil {
		return err
	}
	last := session.Session{}
	if n := len(sessions); n > 0 {
		last = sessions[n-1]
	}
	if last.Exit == nil { // it never ran, or its end is not known
		if last.ID != "" {
			if ws, err = c.salvage(ctx, row, ws, last); err != nil {
				return err
			}
		}
		if len(sessions) >= sessionsMax {
			return problem.Errorf(problem.AgentFailed, "sallyport change log "+string(row.ID), "the agent was interrupted %d times; it is not started again", len(sessions))
		}
		if last, err = c.runAgent(ctx, &row, ws, len(sessions)+1); err != nil {
			return err
		}
	}
	return c.judge(ctx, row, ws, last)
}

// salvage keeps what an interrupted session left, under a ref, and gives a fresh workspace.
func (c *Controller) salvage(ctx context.Context, row store.Change, ws workspace.Workspace, last session.Session) (workspace.Workspace, error) {
	if _, err := c.take(ctx, row, ws, checkpoint.Interrupted, last.ID, nil); err != nil {
		return ws, fmt.Errorf("keep what %s left: %w", last.ID, err)
	}
	if err := c.interrupt(ctx, row, last); err != nil {
		return ws, err
	}
	return c.Workspaces.Fresh(ctx, c.spec(row))
}

// runAgent starts one session and waits for its end, which is written before anything is judged.
func (c *Controller) runAgent(ctx context.Context, row *store.Change, ws workspace.Workspace, attempt int) (session.Session, error) {
	select { // one place per agent that may work at once (SV-095)
	case c.places <- struct{}{}:
		defer func() { <-c.places }()
	case <-ctx.Done():
		return session.Session{}, context.Cause(ctx)
	}
	run, mode, err := c.running(ctx, *row, ws, attempt)
	if err != nil {
		return session.Session{}, err
	}
	s := run.Session
	if err := c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.PutSession(ctx, s); err != nil {
			return err
		}
		return c.append(ctx, tx, row, Move{By: audit.Host, Subject: string(s.ID)}, "started", s.Started)
	}); err != nil {
		return s, err
	}
	stop := c.report(ctx, row.ID, ws, &run)
	exit, err := c.supervise(ctx, row, ws, &run, mode)
	stop()
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errCancelled) {
		return s, context.Cause(ctx) // killed by us, not ended: the next daemon salvages it
	}
	keep := context.WithoutCancel(ctx)
	ended := now()
	s.Ended = &ended
	if err != nil { // it did not run, or not all of it is recorded: neither is an end to judge
		s.Reason = "it did not run: " + problem.Of(err).Text
		_ = c.DB.InTx(keep, func(tx store.Tx) error { return tx.PutSession(keep, s) })
		return s, fmt.Errorf("run the agent: %w", err)
	}
	s.Exit = &exit
	return s, c.DB.InTx(keep, func(tx store.Tx) error {
		if err := tx.PutSession(keep, s); err != nil {
			return err
		}
		reason := *row
		reason.Reason = session.Describe(exit)
		return c.append(keep, tx, &reason, Move{By: audit.Actor{Kind: "agent", Name: string(s.ID), UID: -1}, Subject: string(s.ID)}, "ended", ended)
	})
}

// judge takes the last checkpoint and moves the change by what it holds. Work of an
// agent that failed, or was withdrawn, is kept all the same.
func (c *Controller) judge(ctx context.Context, row store.Change, ws workspace.Workspace, last session.Session) error {
	keep := context.WithoutCancel(ctx)
	taken, err := c.take(keep, row, ws, checkpoint.AtEnd, last.ID, nil)
	if err != nil {
		return fmt.Errorf("take the last checkpoint: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m := Move{Event: Ended, By: audit.Host, Subject: string(taken.Checkpoint.ID), Verb: "checked", Digests: map[string]string{"tree": string(taken.Checkpoint.Tree)}}
	switch {
	case last.Exit.Code != 0 || last.Exit.Limit != nil:
		m.Event, m.Because = Fail, problem.Errorf(problem.AgentFailed, "sallyport change log "+string(row.ID), "%s", session.Describe(*last.Exit))
	case taken.Checkpoint.Status != checkpoint.Valid:
		m.Event, m.Because = Fail, refusal(row.ID, taken.Checkpoint.Violations)
	case len(taken.Edits) == 0:
		m.Event, m.Reason = Unchanged, unchanged(taken.Checkpoint)
	}
	_, err = c.inTx(ctx, row, func(tx store.Tx, row *store.Change) error { return c.move(ctx, tx, row, m) })
	if err != nil {
		return err
	}
	if m.Event != Ended {
		c.tidy(ctx, row)
	}
	return nil
}

// unchanged says what an agent did that changed nothing.
func unchanged(cp checkpoint.Checkpoint) string {
	files := 0
	for _, l := range cp.LeftOver {
		files += l.Files
	}
	if files == 0 {
		return "the agent changed nothing; there is nothing to land"
	}
	return fmt.Sprintf("the agent wrote only files that the repository ignores (%d); there is nothing to land (--include-ignored GLOB takes such files along)", files)
}

// refusal says which rules a checkpoint breaks: the first by name, and how many more.
func refusal(change id.Change, violations []policy.Violation) error {
	next := "sallyport checkpoint list " + string(change)
	if len(violations) == 0 {
		return problem.Errorf(problem.Refused, next, "the last checkpoint is not valid")
	}
	v := violations[0]
	file := fmt.Sprintf("%q", v.File)
	if v.File == "" {
		file = "the change as a whole"
	}
	more := ""
	if n := len(violations) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return problem.Errorf(problem.Refused, next, "%s breaks the rule %s: %s%s", file, v.Constraint, v.Message, more)
}

// stiller stops what runs in a workspace while it is read.
type stiller interface {
	Freeze(ctx context.Context) error
	Thaw() error
}

// take takes one checkpoint and records it; running is nil when nothing runs in the workspace.
func (c *Controller) take(ctx context.Context, row store.Change, ws workspace.Workspace, why checkpoint.Trigger, s id.Session, running stiller) (checkpoint.Taken, error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
		return checkpoint.Taken{}, err
	}
	judging, err := c.rules(ctx, host, git.OID(row.Base))
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
	if running == nil && previous != nil && previous.Session == s && previous.Trigger == why {
		// It is recorded: a crash came before the move that follows it.
		edits, err := host.Edits(ctx, previous.Base, previous.Commit)
		return checkpoint.Taken{Checkpoint: *previous, Edits: edits}, err
	}
	taking := checkpoint.Taking{
		Workspaces: c.Workspaces, Workspace: ws, Host: host, Previous: previous,
		Trigger: why, Session: s, At: now(), Author: c.Settings.Author,
		Plan:           policy.Plan{Allow: row.Request.Allow, Forbid: row.Request.Forbid},
		Rules:          judging.Rules,
		Secrets:        judging.Secrets,
		IncludeIgnored: slices.Concat(row.Request.IncludeIgnored, judging.IncludeIgnored),
		Meter:          c.Meter,
	}
	if running != nil {
		taking.Freeze, taking.Thaw = running.Freeze, running.Thaw
	}
	taken, err := checkpoint.Take(ctx, taking)
	if err != nil {
		return checkpoint.Taken{}, err
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.AddCheckpoint(ctx, taken.Checkpoint); err != nil {
			return err
		}
		return c.append(ctx, tx, &row, Move{
			By: audit.Host, Subject: string(taken.Checkpoint.ID),
			Digests: map[string]string{"commit": string(taken.Checkpoint.Commit), "tree": string(taken.Checkpoint.Tree), "base": row.Base},
		}, "checkpointed: "+string(taken.Checkpoint.Status), taken.Checkpoint.At)
	})
	if err == nil {
		c.feed.publish(Notice{Change: row.ID, At: taken.Checkpoint.At, Kind: "checkpoint", Checkpoint: &taken.Checkpoint})
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

// sessions returns a change's, oldest first.
func (c *Controller) sessions(ctx context.Context, change id.Change) (out []session.Session, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		out, err = tx.Sessions(ctx, change)
		return err
	})
	return out, err
}
