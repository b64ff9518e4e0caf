package control

import (
	"context"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/revert"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// Request accepts a wish: on return it has a row and will end in a visible outcome.
//
// What makes it impossible is said now, before anything is written: a folder that is no
// repository, one in the middle of a merge, a branch that is not
// there, an agent that is not installed, a share or profile that cannot be shown, rules that
// cannot be read. Errors name the thing; their kinds are usage, not_found, refused, unavailable.
//
// Keys are those of the agent's model; they are held in memory until the change ends.
func (c *Controller) Request(ctx context.Context, r request.Request, keys credential.Keys) (receipt Receipt, err error) {
	if err := c.Owner.MayDecide(r.By); err != nil {
		return Receipt{}, err
	}
	r.Kind, r.At = request.Edit, ledger.Now()
	if err := r.Check(); err != nil {
		return Receipt{}, err
	}
	if _, err := git.Version(ctx); err != nil {
		return Receipt{}, err
	}
	if err := c.locate(ctx, &r); err != nil {
		return Receipt{}, err
	}
	if r.Agent == "" {
		if err := c.usual(ctx, &r); err != nil {
			return Receipt{}, err
		}
	}
	change := id.NewChange()
	if err := c.outfits.Receive(c.subject(change, r), keys); err != nil {
		return Receipt{}, err
	}
	defer func() {
		if err != nil {
			c.Keys.Forget(string(change))
		}
	}()
	if r.Keyed, err = c.runnable(change, r, work.Asking(r)); err != nil {
		return Receipt{}, err
	}
	if err := c.possible(ctx, r); err != nil {
		return Receipt{}, err
	}
	if r.CheckedOut {
		dirty, err := c.judge.Dirty(ctx, r)
		if err != nil {
			return Receipt{}, err
		}
		if r.IncludeDirty {
			receipt.Included = dirty
		} else {
			receipt.Uncommitted = dirty
		}
	}
	receipt.Change, err = c.Add(ctx, change, r)
	return receipt, err
}

// Add gives an accepted request its row.
func (c *Controller) Add(ctx context.Context, changeID id.Change, r request.Request) (change.Row, error) {
	if err := c.secretsIn(ctx, r); err != nil {
		return change.Row{}, err
	}
	row := change.Row{ID: changeID, State: change.Requested, Request: r, Created: r.At, Moved: r.At, Due: r.At}
	c.Feed.Keep(row.ID)
	var refused error
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		if r.Kind == request.Revert {
			if refused = revert.Alone(ctx, tx, r); refused != nil {
				return refused
			}
		}
		n, err := tx.NextUID(ctx)
		if err != nil {
			return err
		}
		if c.Settings.FirstUID != 0 {
			row.UID = c.Settings.FirstUID + n%UIDsPerHome
		}
		if err := tx.AddChange(ctx, row); err != nil {
			return err
		}
		return tx.AppendEntry(ctx, audit.Entry{
			At: r.At, Actor: r.By, Change: string(row.ID), Subject: string(row.ID), Verb: "requested",
			Reason: request.FirstLine(r.Text), Digests: map[string]string{"head": string(r.Head)},
		})
	})
	if refused != nil {
		return change.Row{}, refused
	}
	if err != nil {
		return change.Row{}, fmt.Errorf("store the request: %w", err)
	}
	c.Moved(row)
	return row, nil
}

// UIDsPerHome is how many uids a home uses for its sandboxes before it starts again from the first.
const UIDsPerHome = 1 << 16

// locate fills in what the repository says: where it is, which branch, what it stands at.
func (c *Controller) locate(ctx context.Context, r *request.Request) error {
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
	site, err := c.Lander.Inspect(ctx, project, r.Branch)
	if err != nil {
		return err
	}
	r.Branch, r.Head, r.CheckedOut = site.Branch, site.Head, site.CheckedOut
	if r.Onto != "" && r.Onto != r.Branch {
		return c.elsewhere(ctx, r)
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

// runnable resolves the agent and its key now, so that a missing one is said before anything is copied; again is the command that asks
// for it again. It reports whether a key goes with it.
func (c *Controller) runnable(change id.Change, r request.Request, again string) (keyed bool, err error) {
	e, err := c.equip(change, r)
	if errors.Is(err, credential.ErrMissing) { // what is not installed is said first: a key for it is of no use
		if _, missing := e.Program(); missing != nil {
			return false, missing
		}
		return false, problem.Errorf(problem.Unavailable, live.Handing(again, e.Wanted), "%w", err)
	}
	if err == nil {
		err = c.startable(e, r)
	}
	return !e.Key.Empty(), err
}

// startable looks at the agent's program, and at whether what its model uses can be counted.
func (c *Controller) startable(e live.Outfit, r request.Request) error {
	p, err := e.Program()
	if err != nil || p.Model == nil {
		return err
	}
	l, err := c.Agency.Budgets()
	if err != nil {
		return err
	}
	price, err := c.budget.Price(r.Agent)
	if err != nil {
		return err
	}
	return live.Countable(r.Agent, p.Model, price, l)
}

// possible looks at the base as a whole, at the rules in it, and at what the sandbox is to show.
func (c *Controller) possible(ctx context.Context, r request.Request) error {
	judging, err := c.fits(ctx, r)
	if err != nil {
		return err
	}
	if _, err := c.Workspaces.Repository(ctx, r.Project, r.Head); err != nil {
		return err
	}
	_, err = c.house.Environment(ctx, c.opener.With(change.Row{Request: r}, git.Dir{}, judging).Subject(), live.Way{}, false)
	if problem.KindOf(err) == problem.NotFound {
		return problem.Errorf(problem.Usage, "", "%w", err)
	}
	return err
}
