package control

import (
	"cmp"
	"context"
	"fmt"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
)

// fromTheStart is how a change is done that ended before its agent had begun: as a new request would be, on its branch as it is
// now. What stood in its way may have been mended there.
func (c *Controller) fromTheStart(ctx context.Context, row change.Row) (redo, error) {
	r := row.Request
	site, err := c.Lander.Inspect(ctx, r.Project, cmp.Or(r.From, r.Branch))
	if err != nil {
		return redo{}, err
	}
	if r.IncludeDirty && !site.CheckedOut {
		return redo{}, problem.Errorf(problem.Refused, "git -C "+inert.Path(r.Project.Top)+" switch "+inert.Path(r.Branch),
			"%s takes the uncommitted work of %s along, which is not checked out any more", row.ID, r.Branch)
	}
	if err := c.fitOnto(ctx, row, site.Head); err != nil {
		return redo{}, err
	}
	return redo{row: row, agent: true, unbegun: true, Reapplied: proposal.Reapplied{Onto: site.Head}}, nil
}

// standsOn is where a change's branch is now. One that is still to be made is where the branch is that the change was begun on.
func (c *Controller) standsOn(ctx context.Context, r request.Request) (landing.Site, error) {
	branch := r.Branch
	if r.From != "" {
		there, err := r.Project.Common(c.Ops).Branch(ctx, branch)
		if err != nil {
			return landing.Site{}, err
		}
		if !there {
			branch = r.From
		}
	}
	return c.Lander.Inspect(ctx, r.Project, branch)
}

// startsFrom is the commit that a change's workspace is made on: the one that it had, if its agent has begun before. Until then
// no workspace of it holds anything, and the uncommitted files that it takes along are read anew.
func (c *Controller) startsFrom(ctx context.Context, row change.Row) (git.OID, error) {
	r, head := row.Request, cmp.Or(git.OID(row.Base), row.Request.Head)
	begun, err := c.Sessions(ctx, row.ID)
	if err != nil || len(begun) > 0 {
		return head, err
	}
	if row.Base != "" { // it begins again, perhaps on another commit
		if err := c.Workspaces.Remove(ctx, row.ID); err != nil {
			return "", fmt.Errorf("remove the workspace that nothing was done in: %w", err)
		}
	}
	if !r.IncludeDirty {
		return head, nil
	}
	converts, err := conversion.Read(ctx, r.Project, row.Request.ConfigHome())
	if err != nil {
		return "", err
	}
	base, err := c.Workspaces.IncludeDirty(ctx, r.Project, row.ID, head, r.At, converts, c.withoutSecrets(ctx, r, head))
	if err != nil {
		return "", fmt.Errorf("take the uncommitted changes along: %w", err)
	}
	return base, nil
}
