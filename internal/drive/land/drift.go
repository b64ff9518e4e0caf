package land

import (
	"context"
	"errors"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
)

// wayOn adds to a refusal because of drift how a person gets on. Where what differs is their own
// uncommitted work, which --include-dirty took along, nothing has moved: they commit it, and
// approve again.
func (ls *Landings) wayOn(ctx context.Context, row change.Row, because error) error {
	var drift *landing.Drift
	if !errors.As(because, &drift) {
		return because
	}
	r := row.Request
	in := "git -C " + inert.Path(r.Project.Top)
	host, err := ls.Workspaces.EnsureRepository(ctx, r.Project, r.Head, git.OID(row.Base))
	var own []string
	if err == nil {
		own, err = ownWork(ctx, host, row, drift.Paths)
	}
	if err != nil {
		ls.Log.Warn("whether a person's own edits are in the way could not be found out", "change", row.ID, "error", err)
	} else if len(own) == len(drift.Paths) {
		return problem.Errorf(problem.Refused, in+" add -- "+strings.Join(own, " ")+" && "+in+" commit",
			"the branch %[2]s lacks your own uncommitted edits of %[1]s, which --include-dirty took along: commit them as they were then, and approve again; if you have edited more since, commit that and redo the change",
			strings.Join(own, ", "), r.Branch)
	}
	if r.Kind == request.Revert {
		return problem.Errorf(problem.Refused, asBranch(row),
			"%w; first roll back what changed it later, or make a branch of this rollback and merge that", because)
	}
	next, words := onward(row)
	return problem.Errorf(problem.Refused, next, "%w; %s", because, words)
}

// onward is how a person gets on with a change that does not fit its branch as it is now: the command to run, and what to do.
func onward(row change.Row) (next, words string) {
	switch r := row.Request; {
	case r.Drafted():
		return "sallyport change cancel " + string(row.ID), "cancel this change, and ask for the same again on " + r.Branch + " as it is now"
	case r.Kind == request.Swap: // its base holds what the group ran when it began, so nothing makes it anew
		return "sallyport chat " + r.Group, "refuse it, and ask for it anew in a conversation of the group " + r.Group
	}
	return Redoing(row.ID), "redo the change to apply its edits to " + row.Request.Branch +
		" as it is now, or make a branch of it and merge it: " + asBranch(row)
}

// ownWork returns, as a shell takes them, the paths whose base was the person's uncommitted work.
func ownWork(ctx context.Context, host git.Dir, row change.Row, paths []string) ([]string, error) {
	if dirty, err := onUncommitted(ctx, host, row); err != nil || !dirty {
		return nil, err
	}
	committed, err := host.Lookup(ctx, row.Request.Head, paths)
	if err != nil {
		return nil, err
	}
	taken, err := host.Lookup(ctx, git.OID(row.Base), paths)
	if err != nil {
		return nil, err
	}
	var own []string
	for i, path := range paths {
		if committed[i] != taken[i] {
			own = append(own, inert.Path(path))
		}
	}
	return own, nil
}

// onUncommitted reports whether a change stands on a commit of the host's own, with the person's uncommitted work, and not
// on one of the branch.
func onUncommitted(ctx context.Context, host git.Dir, row change.Row) (bool, error) {
	if !row.Request.IncludeDirty {
		return false, nil
	}
	ref := repository.BaseRef(row.ID)
	refs, err := host.Refs(ctx, ref)
	return err == nil && row.Base != "" && refs[ref] == git.OID(row.Base), err
}

// Redoing is the command that has a change made anew on its branch as it is now.
func Redoing(change id.Change) string { return "sallyport change redo " + string(change) }
