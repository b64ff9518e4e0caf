package supervise

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/tool"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Originator is the group that a swap is for: its agent wished for the change, and the swap's agent asks it.
type Originator interface {
	// Hear puts words of a swap's agent before the group's, as a message that wakes it. The same key puts them once.
	Hear(ctx context.Context, swap change.Row, words, key string) error
	// Yield ends the session in which a swap's agent is spoken with once it has proposed something, since it works again, and gives what it
	// has kept there to the session whose folder is at dir.
	Yield(ctx context.Context, swap change.Row, dir string) error
}

// seat gives the session of a swap's agent its tools; one of another change has none. leave takes them away.
func (ss *Supervisors) seat(ctx context.Context, row change.Row, run *session.Running) (leave func(), err error) {
	if row.Request.Kind != request.Swap {
		return func() {}, nil
	}
	if err := ss.Originator.Yield(ctx, row, run.Session.Dir); err != nil {
		return nil, err
	}
	has := live.ToOriginator(func(ctx context.Context, words, key string) error { return ss.Originator.Hear(ctx, row, words, key) })
	intake := func() string { return ofTurn(run, run.Talk.Turn()+1) } // what was asked in an earlier turn may be asked again
	has[tool.SendMessage] = live.Counted(intake, has[tool.SendMessage])
	has[tool.RequestSwap] = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		s := ss.watching(row.ID)
		if s == nil {
			return tool.Result{}, errOver
		}
		r := tool.Result{Text: "It is proposed; a person decides."}
		err := s.please(ctx, func(ctx context.Context) error {
			err := s.propose(ctx, c)
			if errors.Is(err, ledger.ErrAsked) {
				r.Text, err = tool.Asked+", whether that folder is read-only or read-write: end your turn, and call request_swap again then", nil
			}
			return err
		})
		return r, err
	}
	runner, err := ss.runnerOf(ctx, row)
	if err != nil {
		return nil, err
	}
	binds, leave, err := ss.Desk.Seat(ctx, string(row.ID), run.Spec.Owner, live.Without(has, runner.Off()), intake)
	if err != nil {
		return nil, err
	}
	run.Spec.Own = append(run.Spec.Own, binds...)
	run.Program.Dirs = append(run.Program.Dirs, filepath.Dir(sandbox.ToolProgram))
	return leave, nil
}

// ofTurn names a turn of a session among all that its identity ever takes.
func ofTurn(run *session.Running, turn int) string {
	return fmt.Sprintf("%s/%d/%d", run.Session.ID, run.Session.Attempt, turn)
}

// propose records what a swap's agent proposes, and ends its work: nothing that it does afterwards is part of it (SM-044). The tree of its
// commit, as its own git says, must be the one that stands (SM-051).
func (s *supervisor) propose(ctx context.Context, c tool.Call) error {
	args := c.Args.(tool.Swap)
	taken, err := s.take(ctx, checkpoint.TurnEnded)
	if err != nil {
		return err
	}
	cp := taken.Checkpoint
	switch {
	case cp.Status != checkpoint.Valid:
		return grounds.Refusal(s.Row, cp.Violations)
	case len(taken.Edits) == 0:
		return problem.Errorf(problem.Conflict, "", "nothing is changed in %s: there is nothing to propose", sandbox.Worktree)
	case c.Tree != string(cp.Tree):
		return otherTree(args.CommitSHA)
	}
	if err := s.Fits(ctx, s.Row, cp.Commit); err != nil { // while its agent can still correct it
		return err
	}
	wishes, err := group.NewWishes(ctx, s.Host, group.Folder(s.Row.Request.Group), taken.Edits)
	if err == nil {
		err = s.SettleMounts(ctx, s.Row, wishes)
	}
	if err != nil {
		return err
	}

	said := change.Swap{Checkpoint: cp.ID, Commit: args.CommitSHA, Summary: s.Secrets.Redact(strings.TrimSpace(args.OverallSummary)),
		Files: map[string]string{}}
	for path, words := range args.PerFileSummaries {
		said.Files[s.Secrets.Redact(path)] = s.Secrets.Redact(strings.TrimSpace(words))
	}
	by := audit.Actor{Kind: "agent", Name: string(s.run.Session.ID), UID: -1}
	m := ledger.Move{By: by, Subject: string(cp.ID), Reason: request.FirstLine(said.Summary), Digests: map[string]string{"tree": string(cp.Tree)}}
	if err := s.amend(ctx, m, string(tool.RequestSwap), func(row *change.Row) { row.Swap, row.Chosen = &said, cp.ID }); err != nil {
		return err
	}
	s.rounds.over, s.rounds.ended = true, true
	s.run.Session.Reason = session.Proposed
	s.run.Talk.Finish()
	s.process.Kill()
	return nil
}

// otherTree refuses a commit that holds something else than the files that stand.
func otherTree(commit string) error {
	return problem.Errorf(problem.Conflict, "git -C "+sandbox.Worktree+" status",
		"the commit %s does not hold exactly the files that stand in %s: commit all that belongs to the change, remove the rest, and call again with the new commit", inert.Short(commit, 64), sandbox.Worktree)
}

// endDevTurn looks at what stands now that a swap's agent waits. It waits on: only its own word, request_swap, proposes anything.
func (s *supervisor) endDevTurn(ctx context.Context, end agent.TurnEnd) {
	if s.rounds.failure != "" && !end.More {
		s.finish()
		return
	}
	if _, err := s.take(ctx, checkpoint.TurnEnded); err != nil && ctx.Err() == nil {
		s.Log.Warn("the files could not be looked at when a turn ended; sallyport looks when they are proposed", "change", s.Row.ID, "error", err)
	}
	if words := strings.TrimSpace(end.Says); words != "" {
		if err := s.Originator.Hear(ctx, s.Row, words, ofTurn(s.run, end.Turn)); err != nil {
			s.Log.Error("the group's agent was not told what its dev agent says", "change", s.Row.ID, "error", err)
		}
	}
}

// TellDev hands words of a group's agent to the agent that changes what the group runs (SM-042). Errors: problem.Unavailable if none
// works at that change now, or if it does not take them.
func (ss *Supervisors) TellDev(ctx context.Context, row change.Row, words string) error {
	name, of := row.Request.Dev, row.Request.Group
	s := ss.watching(row.ID)
	if s == nil {
		return problem.Errorf(problem.Unavailable, "", "the dev agent %s is being started: tell it again in a moment", name)
	}
	ctx, cancel := context.WithTimeout(ctx, tellMax)
	defer cancel()
	d := s.run.Talk.Tell(ctx, words)
	ss.recordDelivery(context.WithoutCancel(ctx), row.ID, string(s.run.Session.ID), request.FirstLine(words), audit.Actor{Kind: "agent", Name: of, UID: -1}, d)
	if !d.Delivered {
		return problem.Errorf(problem.Unavailable, "", "the dev agent %s did not take the words", name)
	}
	return nil
}

// proposed is the checkpoint that a swap's agent has proposed, whatever became of its session since.
func (ss *Supervisors) proposed(ctx context.Context, row change.Row) (checkpoint.Checkpoint, error) {
	all, err := ss.Checkpoints(ctx, row.ID)
	if err != nil {
		return checkpoint.Checkpoint{}, err
	}
	at := slices.IndexFunc(all, func(cp checkpoint.Checkpoint) bool { return cp.ID == row.Swap.Checkpoint })
	if at < 0 {
		return checkpoint.Checkpoint{}, fmt.Errorf("the checkpoint %s, which %s proposes, is not there", row.Swap.Checkpoint, row.ID)
	}
	return all[at], nil
}

// judgeSwap moves a swap on whose agent has proposed something, or says that it did not.
func (ss *Supervisors) judgeSwap(ctx context.Context, row change.Row, last session.Session) error {
	m := ledger.Move{Event: change.Ended, By: audit.Host, Verb: "checked"}
	if row.Swap == nil {
		m.Event, m.Because = change.Fail, problem.Errorf(problem.AgentFailed, "sallyport change log "+string(row.ID),
			"%s ended without a proposal: %s", row.Request.Dev, gaveUp(last))
	} else {
		cp, err := ss.proposed(ctx, row)
		if err != nil {
			return err
		}
		m.Subject, m.Digests = string(cp.ID), map[string]string{"tree": string(cp.Tree)}
	}
	row, err := ss.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return ss.Move(ctx, tx, row, m) })
	if err == nil && m.Event != change.Ended {
		ss.Tidy(ss.Lasting(), row)
	}
	return err
}
