package control

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
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
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
func (c *Controller) Redo(ctx context.Context, changeID id.Change, by audit.Actor, keys credential.Keys) (row change.Row, err error) {
	if err := c.Owner.MayDecide(by); err != nil {
		return change.Row{}, err
	}
	again, err := c.redoable(ctx, changeID)
	if err != nil {
		return change.Row{}, err
	}
	if row = again.row; again.agent {
		if err := c.mayResume(ctx, changeID); err != nil {
			return change.Row{}, err
		}
		if err := c.Requests.Receive(changeID, row.Request, keys); err != nil {
			return change.Row{}, err
		}
		defer func() {
			if err != nil {
				c.Requests.ForgetEnded(ctx, changeID)
			}
		}()
		if _, err := c.Requests.Runnable(changeID, row.Request, land.Redoing(changeID)); err != nil {
			return change.Row{}, err
		}
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		row = again.row
		return c.beginRedo(ctx, tx, &row, again, by)
	})
	if err == nil {
		c.Moved(row)
	}
	return row, err
}

// redo is what a change is made anew from.
type redo struct {
	row      change.Row
	proposal proposal.Proposal // that was offered last
	last     session.Session
	agent    bool // works again: something did not apply, or is wrong
	anew     bool // from the beginning: nothing can be told to it
	unbegun  bool // it had never begun, and nothing was offered
	proposal.Reapplied
}

// redoable looks whether a change can be made anew, and computes what of it applies to its branch as it is now.
func (c *Controller) redoable(ctx context.Context, changeID id.Change) (redo, error) {
	d, err := c.Show(ctx, changeID)
	if err != nil {
		return redo{}, err
	}
	row, show := d.Change, "sallyport change show "+string(changeID)
	switch state := row.State; {
	case row.Request.Kind != request.Edit:
		return redo{}, problem.Errorf(problem.Conflict, "sallyport change cancel "+string(changeID), "%s is a rollback, which cannot be redone: cancel it, then ask for the rollback again", changeID)
	case d.Trial != nil || d.Landing != nil && d.Landing.State != landing.Undone:
		return redo{}, problem.Errorf(problem.Conflict, show, "%s has landed, or has begun to land, so it cannot be redone: it is %s", changeID, state)
	case state != change.AwaitingApproval && (state == change.Finalized || !state.Final()):
		return redo{}, problem.Errorf(problem.Conflict, show, "%s is %s: only a change that waits for approval, or ended without landing, can be redone", changeID, state)
	case len(d.Sessions) == 0:
		return c.fromTheStart(ctx, row)
	case d.Proposal == nil:
		return redo{}, problem.Errorf(problem.Conflict, "sallyport resume "+string(d.Sessions[len(d.Sessions)-1].ID), "%s has no proposal that could be redone", changeID)
	}
	site, err := c.standsOn(ctx, row.Request)
	if err != nil {
		return redo{}, err
	}
	r := redo{row: row, proposal: *d.Proposal, last: d.Sessions[len(d.Sessions)-1]}
	r.agent = redFor(r.proposal, site.Head) || r.last.Exit == nil || r.last.Exit.Code != 0 || r.last.Exit.Limit != nil
	if site.Head == r.proposal.Base && !r.agent {
		return redo{}, problem.Errorf(problem.Conflict, c.insteadOfRedo(row, r.last), "the branch %s has not moved since %s was made: there is nothing to redo", row.Request.Branch, changeID)
	}
	if err := c.fitOnto(ctx, row, site.Head); err != nil {
		return redo{}, err
	}
	if r.Reapplied, err = c.reapply(ctx, row, r.proposal, site.Head); err != nil {
		return redo{}, fmt.Errorf("apply %s to %s as it is now: %w", changeID, row.Request.Branch, err)
	}
	if r.Writes == 0 && len(r.Not) == 0 {
		return redo{}, problem.Errorf(problem.Conflict, c.insteadOfRedo(row, r.last), "the branch %s has all edits of %s already: there is nothing to redo", row.Request.Branch, changeID)
	}
	if r.agent = r.agent || len(r.Not) > 0; r.agent {
		r.anew, err = c.deaf(changeID, row.Request)
	}
	return r, err
}

// redFor reports whether the last card of a change has a check that failed on what would land on head.
func redFor(p proposal.Proposal, head git.OID) bool {
	on := p.Card.ChecksOn
	return (on == nil || on.Head == head) && slices.ContainsFunc(p.Card.Checks, func(r proposal.CheckResult) bool { return !r.OK })
}

// insteadOfRedo is the way on of a change that need not be made anew.
func (c *Controller) insteadOfRedo(row change.Row, last session.Session) string {
	if row.State == change.AwaitingApproval {
		return "sallyport approve " + string(row.ID)
	}
	return "sallyport resume " + string(last.ID)
}

// fitOnto refuses, by name, a commit that nothing can be worked on at.
func (c *Controller) fitOnto(ctx context.Context, row change.Row, head git.OID) error {
	if _, err := c.judge.Fit(ctx, row, head); err != nil {
		return err
	}
	host, err := c.Workspaces.Repository(ctx, row.Request.Project, head)
	if err != nil {
		return err
	}
	_, err = c.judge.At(ctx, row.Request.Project, host, head)
	return err
}

// deaf reports whether nothing can be told to the program of a request. One without its key is told of that later.
func (c *Controller) deaf(change id.Change, r request.Request) (bool, error) {
	e, err := c.Equip(change, r)
	if err != nil && problem.KindOf(err) != problem.Unavailable {
		return false, err
	}
	p, err := e.Program()
	return !p.Keeps && !p.Messages, err
}

// beginRedo moves a change to be made anew.
func (c *Controller) beginRedo(ctx context.Context, tx store.Tx, row *change.Row, r redo, by audit.Actor) error {
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
		return c.Move(ctx, tx, row, m)
	}
	from := string(r.Commit)
	if r.anew {
		from = ""
	}
	return c.takeUp(ctx, tx, row, r.last, session.Redone, from, m)
}

// reason says to a person what was done with the edits.
func (r redo) reason(branch string) string {
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

// reapply puts the edits of a proposal on another commit, in the host's repository.
func (c *Controller) reapply(ctx context.Context, row change.Row, p proposal.Proposal, onto git.OID) (proposal.Reapplied, error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project, onto)
	if err != nil {
		return proposal.Reapplied{}, err
	}
	who := c.Settings.Author
	who.At = row.Created
	return proposal.Reapply(ctx, proposal.Reapplying{
		Host: host, Change: row.ID, Branch: row.Request.Branch, Edits: p.Edits, Onto: onto, Author: who,
	})
}

// superseded is the proposal of a change that is being made anew on another base; nil of any other.
func (c *Controller) superseded(ctx context.Context, row change.Row) (*proposal.Proposal, error) {
	p, err := c.Proposal(ctx, row.ID)
	if err != nil || p == nil || row.Base == "" || p.Base == git.OID(row.Base) {
		return nil, err
	}
	return p, nil
}

// prepareAgain gives a change that is made anew a workspace on its new base, with what it is to start from. What
// stood on the old base is kept under its refs, and no checkpoint of it counts as the last valid one any more.
func (c *Controller) prepareAgain(ctx context.Context, row change.Row) error {
	base := git.OID(row.Base)
	if err := c.Workspaces.Keep(ctx, row.Request.Project, row.ID, base); err != nil {
		return err
	}
	w, err := c.opener.Open(ctx, row)
	if err != nil {
		return err
	}
	if err := c.Workspaces.Remove(ctx, row.ID); err != nil {
		return fmt.Errorf("remove the workspace on the old base: %w", err)
	}
	valid := checkpoint.ValidRef(row.ID)
	refs, err := w.Host.Refs(ctx, valid)
	if err != nil {
		return err
	}
	if err := workspace.DropRefs(ctx, w.Host, refs); err != nil {
		return err
	}
	said, err := c.equipped(ctx, w)
	if err != nil {
		return err
	}
	if row.From != "" {
		ws, err := c.Workspaces.Renew(ctx, w.Judged(), w.Host, git.OID(row.From))
		if err != nil {
			return err
		}
		sessions, err := c.Sessions(ctx, row.ID)
		if err != nil {
			return err
		}
		t := taking{why: checkpoint.Restored, session: sessions[len(sessions)-1].ID, since: row.Moved}
		if _, err := c.take(ctx, row, ws, t); err != nil {
			return fmt.Errorf("take a checkpoint of what applied: %w", err)
		}
	}
	_, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return c.Move(ctx, tx, row, ledger.Move{Event: change.Prepared, By: audit.Host, Reason: said, Digests: map[string]string{"base": row.Base}})
	})
	return err
}

// redoWords say to an agent what has become of its files; "" if nothing has.
func (c *Controller) redoWords(ctx context.Context, row change.Row) (string, error) {
	p, err := c.superseded(ctx, row)
	if err != nil {
		return "", err
	}
	if p == nil { // on the same base: a check has failed
		if p, err = c.Proposal(ctx, row.ID); err != nil || p == nil {
			return "", err
		}
		return c.Secrets.Redact(redWords(*p)), nil
	}
	r, err := c.reapply(ctx, row, *p, git.OID(row.Base))
	if err != nil {
		return "", err
	}
	words := fmt.Sprintf("%s has moved since you began. Your files now stand on it as it is today, commit %.12s. %s\n", row.Request.Branch, row.Base, r.Words(row.Request.Branch))
	if redFor(*p, git.OID(row.Base)) {
		words += redWords(*p)
	}
	return c.Secrets.Redact(words), nil
}

// redWords say which check failed.
func redWords(p proposal.Proposal) string {
	for _, r := range p.Card.Checks {
		if !r.OK {
			return fmt.Sprintf("The check %q failed there: %s. The end of what it printed:\n\n%s\n", r.Command, r.Why, r.Tail)
		}
	}
	return ""
}

// tellRedo says to a program that reads messages and keeps nothing what has become of its files. The function it returns waits
// until that was said, or cannot be any more.
func (c *Controller) tellRedo(ctx context.Context, row change.Row, last session.Session, run *session.Running) (wait func(), err error) {
	if last.Interrupted != session.Redone || run.Talk == nil || run.Program.Keeps {
		return func() {}, nil
	}
	words, err := c.redoWords(ctx, row)
	if err != nil {
		return func() {}, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.told(context.WithoutCancel(ctx), row.ID, string(run.Session.ID), request.FirstLine(words), audit.Host, run.Talk.Tell(ctx, words))
	}()
	return func() { <-done }, nil
}
