package supervise

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/policy"
)

// answer does what a checkpoint's verdict asks for, while the session stands: nothing, files put
// back, or the agent stopped. It says what was done, as the agent is told (SV-022, SV-025, SV-031).
func (s *supervisor) answer(ctx context.Context, taken checkpoint.Taken, why checkpoint.Trigger) (action string, err error) {
	cp := taken.Checkpoint
	if cp.Status != checkpoint.Invalid {
		if cp.Status == checkpoint.Valid {
			s.failed = 0
		}
		return session.ActionNone, nil
	}
	action = session.ActionNone
	if only, back, all := s.goesBack(taken); back && why != checkpoint.OnDemand {
		kept, err := s.putBack(ctx, only, all)
		if err != nil {
			return action, err
		}
		action = session.ActionReverted
		s.Feed.Publish(change.Notice{Change: s.Row.ID, At: ledger.Now(), Kind: "event", Text: wentBack(cp.ID, kept)})
	}
	if why == checkpoint.OnDemand || s.again {
		return action, nil
	}
	s.failed++
	if s.failed < failuresMax || s.still {
		return action, nil
	}
	return action, s.block(ctx, string(cp.ID), fmt.Errorf("%d checkpoints in a row break the rules: %w", s.failed, grounds.Refusal(s.Row, cp.Violations)))
}

// wentBack says what was put back after an invalid checkpoint: what broke a rule, the rest being kept, or all.
func wentBack(cp id.Checkpoint, kept bool) string {
	if kept {
		return "sallyport restored what broke a rule in " + string(cp) + " from the last valid checkpoint"
	}
	return "sallyport restored all files from the last valid checkpoint; the files as they were are kept in " + string(cp)
}

// goesBack says whether an invalid tree goes back to the last valid one, and which paths of
// it; nil means all. With all the rest follows if it still breaks a rule without them. What others
// rely on is always made in a shadow (SV-034), and a link is always removed (SV-065).
func (s *supervisor) goesBack(taken checkpoint.Taken) (only []string, back, all bool) {
	breaking := taken.Breaking
	if taken.Whole || len(breaking) == 0 {
		breaking = nil
	}
	loud := policy.AtLeast(taken.Checkpoint.Severity, policy.Error) == taken.Checkpoint.Severity
	switch {
	case s.mode.Strategy == session.Shadow && s.mode.Promotion == session.Incremental:
		return breaking, true, true
	case s.mode.Strategy == session.Shadow, slices.ContainsFunc(taken.Edits, func(e git.Edit) bool { return policy.Contract(e.Path) }):
		return nil, true, true
	case s.mode.RevertOnViolated && loud:
		return breaking, true, true
	}
	return taken.Links, len(taken.Links) > 0, false
}

// putBack returns paths of a session that stands to the last valid checkpoint; nil means all. When
// only some went back, what is left is judged at once: if it still breaks a rule, and all is set, all goes back.
func (s *supervisor) putBack(ctx context.Context, only []string, all bool) (kept bool, err error) {
	to, err := s.Takes.Valid(ctx, s.Work)
	if err != nil {
		return false, err
	}
	if err := s.restore(ctx, to, only); err != nil || s.again {
		return false, err
	}
	if only == nil {
		return false, s.remember(ctx)
	}
	left, err := s.record(ctx, checkpoint.Restored)
	if err != nil || !all || left.Checkpoint.Status != checkpoint.Invalid {
		return true, err
	}
	if err := s.restore(ctx, to, nil); err != nil || s.again {
		return false, err
	}
	return false, s.remember(ctx)
}

// notRestored says to a person that a session ended because its tree could not be restored.
const notRestored = "its files could not be restored while it worked"

// restore makes the tree of the session, which stands, that of a commit, proven by a new
// walk. If that cannot be done, or not be proven, the session ends and another one begins on a
// new copy that holds that tree: the agent loses its run, nobody loses work.
func (s *supervisor) restore(ctx context.Context, to git.OID, only []string) error {
	err := s.restoreLive(ctx, to, only)
	s.Meter.Reverted(s.Row.ID, err)
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.Log.Warn("the files could not be restored while an agent worked; the agent starts again on a new copy", "change", s.Row.ID, "error", err)
	m := ledger.Move{By: audit.Host, Reason: notRestored, Digests: map[string]string{"commit": string(to)}}
	if err := s.amend(ctx, m, "started again", func(row *change.Row) { row.From = string(to) }); err != nil {
		return err
	}
	s.again = true
	s.process.Kill()
	return nil
}

func (s *supervisor) restoreLive(ctx context.Context, to git.OID, only []string) error {
	view, err := s.process.View(ctx)
	if err != nil {
		return fmt.Errorf("open the sandbox's tree: %w", err)
	}
	defer view.Close() // nothing was written to the folder itself
	return s.Workspaces.Restore(ctx, s.ws, view, s.Host, to, only)
}
