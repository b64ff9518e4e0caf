package control

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// prepare keeps the base in the host's repository and makes the workspace on it.
func (c *Controller) prepare(ctx context.Context, row change.Row) error {
	if row.Request.Kind == request.Revert {
		return c.Reverts.Compute(ctx, row)
	}
	if before, err := c.superseded(ctx, row); err != nil || before != nil {
		if err != nil {
			return err
		}
		return c.prepareAgain(ctx, row)
	}
	r := row.Request
	host, err := c.Workspaces.Repository(ctx, r.Project, cmp.Or(git.OID(row.Base), r.Head))
	if err != nil {
		return err
	}
	base, err := c.startsFrom(ctx, row)
	if err != nil {
		return err
	}
	if err := c.Workspaces.Keep(ctx, r.Project, row.ID, base); err != nil {
		return err
	}
	judging, err := c.judge.At(ctx, r.Project, host, base)
	if err != nil {
		return err
	}
	row.Base = string(base)
	said, err := c.equipped(ctx, c.opener.With(row, host, judging))
	if err != nil {
		return err
	}
	_, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return c.Move(ctx, tx, row, ledger.Move{Event: change.Prepared, By: audit.Host, Reason: said, Digests: map[string]string{"base": row.Base}})
	})
	return err
}

// uncommittedShown is how many secrets in uncommitted files are named.
const uncommittedShown = 5

// withoutSecrets refuses uncommitted files with a secret in them: they would be in the agent's sandbox, and in its base, where
// no scan looks for them again.
func (c *Controller) withoutSecrets(ctx context.Context, r request.Request, head git.OID) func(git.Dir, []git.Write) error {
	return func(host git.Dir, writes []git.Write) error {
		judging, err := c.judge.At(ctx, r.Project, host, head)
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

// equipped makes the workspace of a change with what its setup leaves on the base, and says what of that is not there.
func (c *Controller) equipped(ctx context.Context, w work.Work) (said string, err error) {
	setup, release, err := c.stocks.SetUp(ctx, w, w.Spec.Base)
	if err != nil {
		return "", err
	}
	defer release()
	spec := w.Spec
	if !setup.None() {
		spec.Setup = setup.ID.String()
	}
	if _, err := c.Workspaces.Prepare(ctx, spec); err != nil {
		return "", fmt.Errorf("prepare the workspace: %w", err)
	}
	c.stocks.Warm(w)
	return stock.Lost(setup.Note), nil
}
