package prepare

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
)

// startsFrom is the commit that a change's workspace is made on: the one that it had, if its agent has begun before. Until then
// no workspace of it holds anything, and the uncommitted files that it takes along are read anew.
func (p *Preparer) startsFrom(ctx context.Context, row change.Row) (git.OID, error) {
	r, head := row.Request, cmp.Or(git.OID(row.Base), row.Request.Head)
	begun, err := p.Sessions(ctx, row.ID)
	if err != nil || len(begun) > 0 {
		return head, err
	}
	if row.Base != "" { // it begins again, perhaps on another commit
		if err := p.Workspaces.Remove(ctx, row.ID); err != nil {
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
	base, err := p.Workspaces.Projects.IncludeDirty(ctx, r.Project, row.ID, head, r.At, converts, p.withoutSecrets(ctx, r, head))
	if err != nil {
		return "", fmt.Errorf("take the uncommitted changes along: %w", err)
	}
	return base, nil
}

// uncommittedShown is how many secrets in uncommitted files are named.
const uncommittedShown = 5

// withoutSecrets refuses uncommitted files with a secret in them: they would be in the agent's sandbox, and in its base, where
// no scan looks for them again.
func (p *Preparer) withoutSecrets(ctx context.Context, r request.Request, head git.OID) func(git.Dir, []git.Write) error {
	return func(host git.Dir, writes []git.Write) error {
		judging, err := p.Opener.Grounds.At(ctx, r.Project, host, head)
		if err != nil {
			return err
		}
		found, err := checkpoint.Uncommitted(ctx, host, head, writes, judging.Rules, judging.Secrets)
		if err != nil || len(found) == 0 {
			return err
		}
		var said []string
		for _, v := range found[:min(len(found), uncommittedShown)] {
			said = append(said, v.File+": "+v.Message)
		}
		if more := len(found) - len(said); more > 0 {
			said = append(said, fmt.Sprintf("and %d more", more))
		}
		return problem.Errorf(problem.Refused, "git -C "+inert.Path(r.Project.Top)+" status --short",
			"--include-dirty would take secrets into the sandbox: have git ignore these files, commit what is no secret, or run without --include-dirty: %s", strings.Join(said, "; "))
	}
}
