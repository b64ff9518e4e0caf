package redo

import (
	"cmp"
	"context"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
)

// fromTheStart is how a change is done that ended before its agent had begun: as a new request would be, on its branch as it is
// now. What stood in its way may have been mended there.
func (rs *Redos) fromTheStart(ctx context.Context, row change.Row) (remake, error) {
	r := row.Request
	site, err := rs.Lander.Inspect(ctx, r.Project, cmp.Or(r.From, r.Branch))
	if err != nil {
		return remake{}, err
	}
	if r.IncludeDirty && !site.CheckedOut {
		return remake{}, problem.Errorf(problem.Refused, "git -C "+inert.Path(r.Project.Top)+" switch "+inert.Path(r.Branch),
			"%s takes the uncommitted work of %s along, which is not checked out any more", row.ID, r.Branch)
	}
	if err := rs.fitOnto(ctx, row, site.Head); err != nil {
		return remake{}, err
	}
	return remake{row: row, agent: true, unbegun: true, Reapplied: proposal.Reapplied{Onto: site.Head}}, nil
}

// standsOn is where a change's branch is now. One that is still to be made is where the branch is that the change was begun on.
func (rs *Redos) standsOn(ctx context.Context, r request.Request) (landing.Site, error) {
	branch := r.Branch
	if r.From != "" {
		there, err := r.Project.Common(rs.Ops).Branch(ctx, branch)
		if err != nil {
			return landing.Site{}, err
		}
		if !there {
			branch = r.From
		}
	}
	return rs.Lander.Inspect(ctx, r.Project, branch)
}
