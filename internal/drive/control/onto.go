package control

import (
	"context"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/request"
)

// elsewhere has a request land on another branch than it starts from: one that is there and not checked out, or a new one.
func (c *Controller) elsewhere(ctx context.Context, r *request.Request) error {
	in := "git -C " + inert.Path(r.Project.Top)
	if r.IncludeDirty {
		return problem.Errorf(problem.Usage, "sallyport run --help", "--include-dirty takes along what is uncommitted on %s, and that cannot land on %s: leave out --include-dirty or --onto", r.Branch, r.Onto)
	}
	dir := r.Project.Common(c.Ops)
	there, err := dir.Branch(ctx, r.Onto)
	if err != nil {
		return problem.Errorf(problem.Usage, in+" branch --list", "--onto %q: %w", r.Onto, err)
	}
	if there {
		site, err := c.Lander.Inspect(ctx, r.Project, r.Onto)
		if err != nil {
			return err
		}
		if site.CheckedOut {
			return notBeside(r, "")
		}
	}
	r.From, r.Branch, r.Onto, r.CheckedOut = r.Branch, r.Onto, "", false
	return nil
}

// notBeside refuses to land beside the person's files on the branch that they have checked out.
func notBeside(r *request.Request, wayOut string) error {
	return problem.Errorf(problem.Usage, "sallyport run --branch "+inert.Path(r.Branch)+" --onto NEW", "--onto needs a branch that is not checked out, and %q is checked out in %q%s", r.Onto, r.Project.Top, wayOut)
}
