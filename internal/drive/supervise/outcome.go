package supervise

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	"sallyport/internal/store"
)

// judgeLast takes the last checkpoint and moves the change by what it holds. Work of an
// agent that failed, or was withdrawn, is kept all the same.
func (ss *Supervisors) judgeLast(ctx context.Context, w work.Work, ws workspace.Workspace, last session.Session) error {
	keep, row := ss.Lasting(), w.Row
	var taken checkpoint.Taken
	err := ss.gate.pass(keep, true, func() (err error) {
		taken, err = ss.Takes.Take(keep, w, ws, Taking{Why: checkpoint.AtEnd, Session: last.ID, Since: last.Started})
		return err
	})
	if err != nil {
		return fmt.Errorf("take the last checkpoint: %w", err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if row.Request.Kind == request.Swap {
		return ss.judgeSwap(ctx, row, last)
	}
	cp, edits := taken.Checkpoint, len(taken.Edits)
	m := ledger.Move{Event: change.Ended, By: audit.Host, Subject: string(cp.ID), Verb: "checked"}
	if cp.Status != checkpoint.Valid && last.Exit.Code == 0 && last.Exit.Limit == nil {
		fallen, err := ss.fallBack(ctx, w, cp)
		if err != nil {
			return err
		}
		if fallen != nil {
			m.Reason = grounds.Refusal(row, cp.Violations).Error() + "; the last valid checkpoint before that is proposed instead"
			cp, edits = *fallen, fallen.Total()
		}
	}
	m.Digests = map[string]string{"tree": string(cp.Tree)}
	switch {
	case last.Exit.Code != 0 || last.Exit.Limit != nil:
		m.Event, m.Because = change.Fail, problem.Errorf(problem.AgentFailed, "sallyport change log "+string(row.ID), "%s", gaveUp(last))
	case cp.Status != checkpoint.Valid:
		m.Event, m.Because = change.Fail, grounds.Refusal(row, cp.Violations)
	case edits == 0 && len(w.Checks()) == 0:
		m = grounds.Idled(row, cp)
	}
	row, err = ss.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		row.Chosen = cp.ID
		return ss.Move(ctx, tx, row, m)
	})
	if err != nil {
		return err
	}
	if m.Event != change.Ended {
		ss.Tidy(ss.Lasting(), row)
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
func (ss *Supervisors) fallBack(ctx context.Context, w work.Work, last checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
	if w.Mode().Strategy != session.Shadow {
		return nil, nil
	}
	all, err := ss.Checkpoints(ctx, w.Row.ID)
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
