// Package revert undoes a landed change by a change of its own, made without an agent: the old files on today's head, with the same
// card and the same way to land.
package revert

import (
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/workspace"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// Parts are what reverts stand on.
type Parts struct {
	*ledger.Ledger
	Owner      person.Owner
	Lander     *landing.Lander
	Workspaces *workspace.Manager
	Ops        disk.Ops
	Author     git.Signature // of commits of the host's own; its At is ignored
	Trials     Trials
	Requests   Requests
}

// Trials rolls back what is on trial: that needs no change of its own.
type Trials interface {
	RollBack(ctx context.Context, change id.Change, by audit.Actor, reason string) error
}

// Requests gives an accepted request its row.
type Requests interface {
	Add(ctx context.Context, change id.Change, r request.Request) (change.Row, error)
}

// Reverts undoes what has landed.
type Reverts struct{ Parts }

// New returns Reverts.
func New(p Parts) *Reverts { return &Reverts{p} }

// Rollback asks for the undoing of a finalized change: a new change of kind revert, made
// without an agent, with the same card and the same way to land.
func (rs *Reverts) Rollback(ctx context.Context, changeID id.Change, by audit.Actor, reason string, approve request.Approve) (change.Row, error) {
	if err := rs.Owner.MayDecide(by); err != nil {
		return change.Row{}, err
	}
	row, err := rs.Row(ctx, changeID)
	if err != nil {
		return change.Row{}, err
	}
	landed, ok, err := rs.Landing(ctx, changeID)
	if err != nil {
		return change.Row{}, err
	}
	p, err := rs.Proposal(ctx, changeID)
	if err != nil {
		return change.Row{}, err
	}
	switch {
	case row.State == change.InTrial:
		if err := rs.Trials.RollBack(ctx, changeID, by, reason); err != nil {
			return change.Row{}, err
		}
		return rs.Row(context.WithoutCancel(ctx), changeID)
	case row.State == change.RolledBack && row.RevertedBy == "":
		return change.Row{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(changeID), "%s was rolled back already: %s", changeID, row.Reason)
	case row.State == change.RolledBack:
		return change.Row{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(row.RevertedBy),
			"%s was rolled back already, by %s", changeID, row.RevertedBy)
	case row.State != change.Finalized:
		return change.Row{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(changeID),
			"%s is %s: only a change that has landed can be rolled back", changeID, row.State.Words())
	case row.Request.Release != "":
		return change.Row{}, problem.Errorf(problem.Refused, "sallyport upgrade previous",
			"%s has moved no file: it had the host run by another release, and the one before is brought back as it was brought", changeID)
	case !ok || p == nil || landed.State != landing.Landed || len(landed.Edits) == 0:
		return change.Row{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(changeID),
			"%s landed nothing: there is nothing to roll back", changeID)
	}
	if reason = request.FirstLine(reason); reason == "" {
		reason = "asked for by " + by.Name
	}
	r := request.Request{
		Kind: request.Revert, By: by, At: ledger.Now(), Text: "Roll back " + string(changeID) + ": " + p.Card.Title,
		Project: row.Request.Project, Branch: row.Request.Branch, Agent: "none",
		Approve: approve, Reverts: changeID, Reason: reason, Home: row.Request.Home,
	}
	site, err := rs.Lander.Inspect(ctx, r.Project, r.Branch)
	if err != nil {
		return change.Row{}, err
	}
	r.Head, r.CheckedOut = site.Head, site.CheckedOut
	return rs.Requests.Add(ctx, id.NewChange(), r)
}

// Compute makes the tree that has the touched paths as they were before, on today's head.
func (rs *Reverts) Compute(ctx context.Context, row change.Row) error {
	r := row.Request
	landed, ok, err := rs.Landing(ctx, r.Reverts)
	if err != nil || !ok {
		return fmt.Errorf("find the landing of %s: %w", r.Reverts, err)
	}
	if err := rs.Workspaces.Repositories.Keep(ctx, r.Project, row.ID, r.Head); err != nil {
		return err
	}
	host, err := rs.Workspaces.EnsureRepository(ctx, r.Project, landed.Head) // it holds what goes back
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return err
	}
	back := landing.Inverse(landed.Edits)
	if err := rs.unmoved(ctx, host, r, landed.NewCommit, back); err != nil {
		return err
	}
	who := rs.Author
	who.At = r.At
	_, err = host.Import(ctx, "revert:import", git.Import{
		Ref: checkpoint.Ref(row.ID, 1), From: r.Head, Parents: []git.OID{r.Head}, Writes: git.Writes(back),
		Message: "rollback of " + string(r.Reverts) + "\n", Author: who, Committer: who,
	})
	if err != nil {
		return err
	}
	row.Base = string(r.Head)
	_, err = rs.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return rs.Move(ctx, tx, row, ledger.Move{Event: change.Computed, By: audit.Host, Subject: string(r.Reverts),
			Digests: map[string]string{"base": row.Base}})
	})
	return err
}

// unmoved refuses when a later commit has changed a path that would go back, and names what has to go back first; and when nothing of the
// landing is on the branch any more.
func (rs *Reverts) unmoved(ctx context.Context, host git.Dir, r request.Request, commit git.OID, back []git.Edit) error {
	paths := make([]string, len(back))
	for i, e := range back {
		paths[i] = e.Path
	}
	found, err := host.Lookup(ctx, r.Head, paths)
	if err != nil {
		return err
	}
	var moved, named []string
	undone := true
	for i, e := range back {
		undone = undone && found[i] == e.New
		if found[i] != e.Old && !(e.Old.Absent() && found[i].Mode == git.Folder) {
			moved = append(moved, e.Path)
			named = append(named, fmt.Sprintf("%q", e.Path))
		}
	}
	if len(moved) == 0 {
		return nil
	}

	in := "git -C " + inert.Path(r.Project.Top)
	project := r.Project.Common(rs.Ops)
	gone := func(why string) error {
		return problem.Errorf(problem.Conflict, in+" log "+inert.Path(r.Branch), "there is nothing to roll back: "+why, commit, r.Reverts, r.Branch)
	}
	if undone {
		return gone("what commit %.12[1]s of %[2]s changed is on %[3]s as it was before")
	}
	there, err := project.Contains(ctx, r.Head, commit)
	if err != nil {
		return err
	}
	if !there {
		return gone("commit %.12[1]s of %[2]s is not on %[3]s any more")
	}

	at, err := project.LastChange(ctx, r.Head, moved[:min(len(moved), pathsAsked)])
	if err != nil || at == "" {
		return problem.Errorf(problem.Refused, in+" log "+inert.Path(r.Branch),
			"%s changed on %s after %s landed: rolling that back would undo a later commit too",
			strings.Join(named, ", "), r.Branch, r.Reverts)
	}
	text, next := fmt.Sprintf("commit %.12[1]s first (git revert %.12[1]s)", at), in+" show "+string(at)
	first, err := rs.landedAs(ctx, r.Project, at)
	if err != nil {
		return err
	}
	if first != "" {
		text, next = fmt.Sprintf("%s (commit %.12s) first", first, at), "sallyport rollback "+string(first)
	}
	return problem.Errorf(problem.Refused, next, "%s changed on %s after %s landed: roll back %s, or the rollback would undo that too",
		strings.Join(named, ", "), r.Branch, r.Reverts, text)
}

// pathsAsked bounds the words of one command; the first paths are enough to name a commit.
const pathsAsked = 100

// landedAs returns the change that made a commit of a project; "" if none that is known did.
func (rs *Reverts) landedAs(ctx context.Context, p git.Project, commit git.OID) (made id.Change, err error) {
	err = rs.DB.Read(ctx, func(tx store.Tx) error {
		rows, err := tx.Changes(ctx, change.Filter{Top: p.Top, States: []change.State{change.Finalized, change.InTrial}, Limit: landedAsked})
		if err != nil {
			return err
		}
		for _, row := range rows {
			l, ok, err := tx.LandingOf(ctx, row.ID)
			if err != nil {
				return err
			}
			if ok && l.State == landing.Landed && l.NewCommit == commit {
				made = row.ID
				return nil
			}
		}
		return nil
	})
	return made, err
}

// landedAsked is how many changes, newest first, are looked at for a commit.
const landedAsked = 1000

// Offer finds the tree that Compute made.
func (rs *Reverts) Offer(ctx context.Context, row change.Row, o *grounds.Offer) (err error) {
	ref := checkpoint.Ref(row.ID, 1)
	if o.Commit, err = o.Host.Resolve(ctx, ref); err == nil && o.Commit == "" {
		err = fmt.Errorf("%s is gone from %s", ref, o.Host.Path)
	}
	return err
}

// Alone refuses a second rollback of what is being rolled back: the first one is the way on.
func Alone(ctx context.Context, tx store.Tx, r request.Request) error {
	open, err := ledger.Rollbacks(ctx, tx, r)
	if err != nil || len(open) == 0 {
		return err
	}
	first := open[0]
	if first.State == change.AwaitingApproval {
		return problem.Errorf(problem.Conflict, "sallyport approve "+string(first.ID),
			"%s is being rolled back already: %s waits for your approval; to ask anew, cancel that one first: sallyport change cancel %s",
			r.Reverts, first.ID, first.ID)
	}
	return problem.Errorf(problem.Conflict, "sallyport change show "+string(first.ID),
		"%s is being rolled back already, by %s, which is %s", r.Reverts, first.ID, first.State.Words())
}
