package change

import (
	"context"
	"errors"
	"strings"

	"sallyport/internal/git"
	"sallyport/internal/inert"
	"sallyport/internal/landing"
	"sallyport/internal/problem"
	"sallyport/internal/store"
)

// wayOn adds to a refusal because of drift how a person gets on. Where what differs is their own
// uncommitted work, which --include-dirty took along, nothing has moved: they commit it, and
// approve again.
func (c *Controller) wayOn(ctx context.Context, row store.Change, because error) error {
	var drift *landing.Drift
	if !errors.As(because, &drift) {
		return because
	}
	r := row.Request
	in := "git -C " + inert.Path(r.Project.Top)
	if own, err := c.ownWork(ctx, row, drift.Paths); err != nil {
		c.Log.Warn("whose edits are in the way could not be found out", "change", row.ID, "error", err)
	} else if len(own) == len(drift.Paths) {
		return problem.Errorf(problem.Refused, in+" add -- "+strings.Join(own, " ")+" && "+in+" commit",
			"%s on %s is without your own uncommitted edits, which --include-dirty took along: commit them as they were then, and approve again; if you have edited them since, run the request again: %w",
			strings.Join(own, ", "), r.Branch, ownDrift{})
	}
	return problem.Errorf(problem.Refused, byHand(row),
		"%w; run the request again to have it done on %s as it is now, or merge it by hand and commit", because, r.Branch)
}

// ownDrift is a drift that the person's own uncommitted work is.
type ownDrift struct{}

func (ownDrift) Error() string { return "the work tree is ahead of the branch" }
func (ownDrift) Unwrap() error { return landing.ErrDrift }

// ownWork returns, as a shell takes them, the paths whose base was the person's uncommitted work.
func (c *Controller) ownWork(ctx context.Context, row store.Change, paths []string) ([]string, error) {
	if !row.Request.IncludeDirty || row.Base == string(row.Request.Head) {
		return nil, nil
	}
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
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
