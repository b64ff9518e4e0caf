package redo

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/land"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// Redo has an unlanded change made anew on its branch as it is now: what was offered last is applied there where it fits.
// If all of it does, checks and a new card follow. Otherwise, or where a check has failed, its agent goes on there and is told; a
// program that cannot be told begins anew. What was asked before is void. One whose agent had not begun is prepared from the
// beginning, its setup included.
//
// Errors: conflict if its agent has offered nothing, if it has landed, or if the branch stands where it was made and no check has failed;
// refused, as for a new request, if the repository is not fit to be worked on.
func (rs *Redos) Redo(ctx context.Context, changeID id.Change, by audit.Actor, keys credential.Keys) (row change.Row, err error) {
	if err := rs.Owner.MayDecide(by); err != nil {
		return change.Row{}, err
	}
	again, err := rs.redoable(ctx, changeID)
	if err != nil {
		return change.Row{}, err
	}
	if row = again.row; again.agent {
		if err := rs.MayResume(ctx, changeID); err != nil {
			return change.Row{}, err
		}
		if err := rs.Requests.Receive(changeID, row.Request, keys); err != nil {
			return change.Row{}, err
		}
		defer func() {
			if err != nil {
				rs.Requests.ForgetEnded(ctx, changeID)
			}
		}()
		if _, err := rs.Requests.Runnable(changeID, row.Request, land.Redoing(changeID)); err != nil {
			return change.Row{}, err
		}
	}
	err = rs.DB.InTx(ctx, func(tx store.Tx) error {
		row = again.row
		return rs.beginRedo(ctx, tx, &row, again, by)
	})
	if err == nil {
		rs.Moved(row)
	}
	return row, err
}

// remake is what a change is made anew from.
type remake struct {
	row      change.Row
	proposal proposal.Proposal // that was offered last
	last     session.Session
	agent    bool // works again: something did not apply, or is wrong
	anew     bool // from the beginning: nothing can be told to it
	unbegun  bool // it had never begun, and nothing was offered
	proposal.Reapplied
}

// redoable looks whether a change can be made anew, and computes what of it applies to its branch as it is now.
func (rs *Redos) redoable(ctx context.Context, changeID id.Change) (remake, error) {
	d, err := rs.Views.Show(ctx, changeID)
	if err != nil {
		return remake{}, err
	}
	row, show := d.Change, "sallyport change show "+string(changeID)
	switch state := row.State; {
	case row.Request.Drafted():
		return remake{}, problem.Errorf(problem.Conflict, show,
			"%s is about the files of a group, and no agent made it: what it was asked with is asked anew", changeID)
	case row.Request.Kind == request.Swap:
		return remake{}, AskAnew(row)
	case row.Request.Kind != request.Edit:
		return remake{}, problem.Errorf(problem.Conflict, "sallyport change cancel "+string(changeID),
			"%s is a rollback, which cannot be redone: cancel it, then ask for the rollback again", changeID)
	case d.Trial != nil || d.Landing != nil && d.Landing.State != landing.Undone:
		return remake{}, problem.Errorf(problem.Conflict, show, "%s has landed, or has begun to land, so it cannot be redone: it is %s", changeID, state)
	case state != change.AwaitingApproval && (state == change.Finalized || !state.Final()):
		return remake{}, problem.Errorf(problem.Conflict, show,
			"%s is %s: only a change that waits for approval, or ended without landing, can be redone", changeID, state)
	case len(d.Sessions) == 0:
		return rs.fromTheStart(ctx, row)
	case d.Proposal == nil:
		return remake{}, problem.Errorf(problem.Conflict, "sallyport resume "+string(d.Sessions[len(d.Sessions)-1].ID),
			"%s has no proposal that could be redone", changeID)
	}
	site, err := rs.standsOn(ctx, row.Request)
	if err != nil {
		return remake{}, err
	}
	r := remake{row: row, proposal: *d.Proposal, last: d.Sessions[len(d.Sessions)-1]}
	r.agent = redFor(r.proposal, site.Head) || r.last.Exit == nil || r.last.Exit.Code != 0 || r.last.Exit.Limit != nil
	if site.Head == r.proposal.Base && !r.agent {
		return remake{}, problem.Errorf(problem.Conflict, rs.insteadOfRedo(row, r.last),
			"the branch %s has not moved since %s was made: there is nothing to redo", row.Request.Branch, changeID)
	}
	if err := rs.fitOnto(ctx, row, site.Head); err != nil {
		return remake{}, err
	}
	if r.Reapplied, err = rs.reapply(ctx, row, r.proposal, site.Head); err != nil {
		return remake{}, fmt.Errorf("apply %s to %s as it is now: %w", changeID, row.Request.Branch, err)
	}
	if r.Writes == 0 && len(r.Not) == 0 {
		return remake{}, problem.Errorf(problem.Conflict, rs.insteadOfRedo(row, r.last),
			"the branch %s has all edits of %s already: there is nothing to redo", row.Request.Branch, changeID)
	}
	if r.agent = r.agent || len(r.Not) > 0; r.agent {
		r.anew, err = rs.deaf(changeID, row.Request)
	}
	return r, err
}

// redFor reports whether the last card of a change has a check that failed on what would land on head.
func redFor(p proposal.Proposal, head git.OID) bool {
	on := p.Card.ChecksOn
	return (on == nil || on.Head == head) && slices.ContainsFunc(p.Card.Checks, func(r proposal.CheckResult) bool { return !r.OK })
}

// insteadOfRedo is the way on of a change that need not be made anew.
func (rs *Redos) insteadOfRedo(row change.Row, last session.Session) string {
	if row.State == change.AwaitingApproval {
		return "sallyport approve " + string(row.ID)
	}
	return "sallyport resume " + string(last.ID)
}

// fitOnto refuses, by name, a commit that nothing can be worked on at.
func (rs *Redos) fitOnto(ctx context.Context, row change.Row, head git.OID) error {
	if _, err := rs.Opener.Grounds.Fit(ctx, row, head); err != nil {
		return err
	}
	host, err := rs.Workspaces.EnsureRepository(ctx, row.Request.Project, head)
	if err != nil {
		return err
	}
	_, err = rs.Opener.Grounds.At(ctx, row.Request.Project, host, head)
	return err
}

// deaf reports whether nothing can be told to the program of a request. One without its key is told of that later.
func (rs *Redos) deaf(change id.Change, r request.Request) (bool, error) {
	e, err := rs.Requests.Equip(change, r)
	if err != nil && problem.KindOf(err) != problem.Unavailable {
		return false, err
	}
	p, err := e.Program()
	return !p.Keeps && !p.Messages, err
}

// beginRedo moves a change to be made anew.
func (rs *Redos) beginRedo(ctx context.Context, tx store.Tx, row *change.Row, r remake, by audit.Actor) error {
	p, _, err := tx.Proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if p.Number != r.proposal.Number {
		return fmt.Errorf("redo %s: %w", row.ID, proposal.ErrSuperseded)
	}
	if err := approval.Withdraw(ctx, tx, row.ID, ledger.Now()); err != nil {
		return err
	}
	m := ledger.Move{Event: change.Again, By: by, Verb: "redone", Reason: r.reason(row.Request.Branch), Digests: map[string]string{"base": string(r.Onto)}}
	row.Base = string(r.Onto)
	if !r.agent || r.unbegun {
		row.From, row.Cancel = string(r.Commit), false
		return rs.Move(ctx, tx, row, m)
	}
	from := string(r.Commit)
	if r.anew {
		from = ""
	}
	return rs.TakeUp(ctx, tx, row, r.last, session.Redone, from, m)
}

// reason says to a person what was done with the edits.
func (r remake) reason(branch string) string {
	switch n := len(r.Not); {
	case r.unbegun:
		return fmt.Sprintf("from the beginning, on %s as it is now (%.12s)", cmp.Or(r.row.Request.From, branch), r.Onto)
	case r.anew:
		return fmt.Sprintf("on %s as it is now (%.12s); its program starts from the beginning", branch, r.Onto)
	case n > 0:
		return fmt.Sprintf("on %s as it is now (%.12s); the edits of %d paths did not apply, and the agent is told which", branch, r.Onto, n)
	case r.agent:
		return fmt.Sprintf("on %s as it is now (%.12s); all edits applied, and the agent is told what failed", branch, r.Onto)
	}
	return fmt.Sprintf("on %s as it is now (%.12s); all edits applied", branch, r.Onto)
}
