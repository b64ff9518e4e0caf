package view

import (
	"cmp"
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/repository"
	"sallyport/internal/store"
)

// Branched is a branch that a person asked for.
type Branched struct {
	Name   string
	Commit git.OID
}

// Branch writes a branch into the project's repository whose one commit upon the change's base is what was offered last: for a
// person to look at with their own tools. It lands nothing, and nothing of the change depends on it.
func (v *Views) Branch(ctx context.Context, change id.Change, name string, by audit.Actor) (Branched, error) {
	if err := v.Owner.MayDecide(by); err != nil {
		return Branched{}, err
	}
	name, err := git.Short(name)
	if err != nil {
		return Branched{}, problem.Errorf(problem.Usage, "sallyport change branch --help", "%w", err)
	}
	d, err := v.Show(ctx, change)
	if err != nil {
		return Branched{}, err
	}
	row, p := d.Change, d.Proposal
	if p == nil {
		return Branched{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(change), "%s has no proposal yet: it is %s",
			change, row.State.Words())
	}
	if err := row.Request.Project.Plain(); err != nil {
		return Branched{}, err
	}
	host, err := v.Holding(ctx, row, p.Commit)
	if err != nil {
		return Branched{}, err
	}

	says, err := v.Commits.ForBranch(ctx, row, *p)
	if err != nil {
		return Branched{}, err
	}
	made, err := host.Import(ctx, "branch:commit", git.Import{
		Ref: repository.RefRoot(change) + "branch", From: p.Commit, Parents: []git.OID{p.Base},
		Message: says.Message, Author: says.Author, Committer: says.Committer,
	})
	if err != nil {
		return Branched{}, fmt.Errorf("make the commit of the branch: %w", err)
	}
	b := Branched{Name: cmp.Or(name, "sallyport/"+string(change)), Commit: made.OID}
	if err := v.Workspaces.Repositories.Lend(ctx, host, row.Request.Project, b.Name, made.OID, p.Base); err != nil {
		return Branched{}, err
	}
	row.Reason = b.Name
	err = v.DB.InTx(ctx, func(tx store.Tx) error {
		return v.Append(ctx, tx, &row, ledger.Move{By: by,
			Digests: map[string]string{"commit": string(b.Commit), "tree": string(p.Tree)}}, "written as a branch", ledger.Now())
	})
	return b, err
}
