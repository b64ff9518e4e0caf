package accept

import (
	"context"

	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/request"
)

// locate fills in what the repository says: where it is, which branch, what it stands at.
func (rs *Requests) locate(ctx context.Context, r *request.Request) error {
	project, workdir, err := git.Find(ctx, r.Project.Top)
	if err != nil {
		return err
	}
	r.Project, r.Workdir = project, workdir
	for flag, name := range map[string]*string{"--branch": &r.Branch, "--onto": &r.Onto} {
		if *name, err = git.Short(*name); err != nil {
			return problem.Errorf(problem.Usage, "git -C "+inert.Path(project.Top)+" branch --list", "%s: %w", flag, err)
		}
	}
	site, err := rs.Lander.Inspect(ctx, project, r.Branch)
	if err != nil {
		return err
	}
	r.Branch, r.Head, r.CheckedOut = site.Branch, site.Head, site.CheckedOut
	if r.Onto != "" && r.Onto != r.Branch {
		return rs.elsewhere(ctx, r)
	}
	if r.Onto != "" && r.CheckedOut {
		return notBeside(r, ": to land there, leave --onto out")
	}
	r.Onto = ""
	if r.IncludeDirty && !r.CheckedOut {
		return problem.Errorf(problem.Usage, "git -C "+inert.Path(project.Top)+" switch "+inert.Path(r.Branch),
			"--include-dirty takes the uncommitted work of the branch that is checked out, and %s is not checked out", r.Branch)
	}
	return nil
}

// elsewhere has a request land on another branch than it starts from: one that is there and not checked out, or a new one.
func (rs *Requests) elsewhere(ctx context.Context, r *request.Request) error {
	in := "git -C " + inert.Path(r.Project.Top)
	if r.IncludeDirty {
		return problem.Errorf(problem.Usage, "sallyport run --help",
			"--include-dirty takes along what is uncommitted on %s, and that cannot land on %s: leave out --include-dirty or --onto", r.Branch, r.Onto)
	}
	dir := r.Project.Common(rs.Ops)
	there, err := dir.Branch(ctx, r.Onto)
	if err != nil {
		return problem.Errorf(problem.Usage, in+" branch --list", "--onto %q: %w", r.Onto, err)
	}
	if there {
		site, err := rs.Lander.Inspect(ctx, r.Project, r.Onto)
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
	return problem.Errorf(problem.Usage, "sallyport run --branch "+inert.Path(r.Branch)+" --onto NEW",
		"--onto needs a branch that is not checked out, and %q is checked out in %q%s", r.Onto, r.Project.Top, wayOut)
}

// usual fills in the agent that the repository names at the request's head.
func (rs *Requests) usual(ctx context.Context, r *request.Request) error {
	if err := r.Project.Plain(); err != nil {
		return err
	}
	host, err := rs.Workspaces.EnsureRepository(ctx, r.Project, r.Head)
	if err != nil {
		return err
	}
	judging, err := rs.Opener.Grounds.At(ctx, r.Project, host, r.Head)
	if err != nil {
		return err
	}
	if r.Agent = judging.Agent; r.Agent == "" {
		return problem.Errorf(problem.Usage, "sallyport agent list",
			"no agent is named: give one with --agent, or a COMMAND after --, or have the repository's .sallyport.yaml name one (sallyport init writes that file, which counts once you have committed it)")
	}
	return nil
}
