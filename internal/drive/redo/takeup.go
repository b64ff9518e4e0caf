package redo

import (
	"context"

	"sallyport/internal/base/problem"
	"sallyport/internal/drive/land"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/store"
)

// TakeUp moves a change back to work with a session that goes on from a tree, and why.
func (rs *Redos) TakeUp(ctx context.Context, tx store.Tx, row *change.Row, s session.Session, why session.Interruption, from string, m ledger.Move) error {
	all, err := tx.Sessions(ctx, row.ID.Subject())
	if err != nil {
		return err
	}
	if last := all[len(all)-1]; last.ID != s.ID {
		s.Attempt = last.Attempt + 1
	}
	s.Ended, s.Exit, s.Interrupted, s.Reason = nil, nil, why, string(why)
	if err := tx.PutSession(ctx, s); err != nil {
		return err
	}
	row.Identity, row.From, row.Cancel, row.Resumes = s.ID, from, false, row.Resumes+1
	return rs.Move(ctx, tx, row, m)
}

// SendBack has the agent of a swap go on from what it proposed, in its last session: that is not what lands.
func (rs *Redos) SendBack(ctx context.Context, tx store.Tx, row *change.Row, m ledger.Move) error {
	cp, err := tx.Checkpoint(ctx, row.Swap.Checkpoint)
	if err != nil {
		return err
	}
	all, err := tx.Sessions(ctx, row.ID.Subject())
	if err != nil {
		return err
	}
	row.Swap = nil
	return rs.TakeUp(ctx, tx, row, all[len(all)-1], session.Redone, string(cp.Commit), m)
}

// AskAnew refuses to take up a change of what a group runs: another may have been asked for since, and one works at a time (SM-022, SM-100).
func AskAnew(row change.Row) error {
	return problem.Errorf(problem.Conflict, "sallyport chat "+row.Request.Group,
		"%s changes what the group %s runs: ask for it anew in a conversation of that group", row.ID, row.Request.Group)
}

// Onward is the command after a change that cannot be resumed where it stands: its agent's next session, or its story.
func Onward(ctx context.Context, tx store.Tx, row change.Row) (string, error) {
	switch row.State {
	case change.Failed, change.Cancelled, change.Rejected:
		all, err := tx.Sessions(ctx, row.ID.Subject())
		if err != nil {
			return "", err
		}
		if _, tried, err := tx.Trial(ctx, row.ID); err != nil {
			return "", err
		} else if row.Request.Kind == request.Edit && !tried {
			if len(all) == 0 { // its agent has not begun
				return land.Redoing(row.ID), nil
			}
			return "sallyport resume " + string(all[len(all)-1].ID), nil
		}
	}
	return "sallyport change show " + string(row.ID), nil
}
