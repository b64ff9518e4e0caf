package standing

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
)

// Requests gives an accepted request its row.
type Requests interface {
	Add(ctx context.Context, change id.Change, r request.Request) (change.Row, error)
	// Runnable looks whether the request's agent could begin; again is the command after that.
	Runnable(change id.Change, r request.Request, again string) (keyed bool, err error)
}

// Asked is what a person asks of a group.
type Asked struct {
	By      audit.Actor
	Name    string // of the group
	Agent   string // of a new one; "" = the one that the template names
	Message string // what the commit is to say; "" = what is done
	User    string // folder whose git configuration counts
	Shown   Shown
}

// Create asks for a new group, a copy of the template as it is committed. The row that is returned lands it.
func (g *Groups) Create(ctx context.Context, a Asked) (change.Row, error) {
	if err := g.may(a.By); err != nil {
		return change.Row{}, err
	}
	folder, err := g.parse(ctx, a.Name)
	if err != nil {
		return change.Row{}, err
	}
	agent, err := runs(a.Agent)
	if err != nil {
		return change.Row{}, err
	}
	again := strings.TrimSuffix("sallyport group create "+string(folder)+" --agent "+string(agent), " --agent ")
	return g.ask(ctx, a, folder, g.shown(ctx, a.Shown, again, func(_ git.Project, host git.Dir, base git.OID, by group.By) (group.Draft, error) {
		d, err := group.Create(ctx, host, base, group.Beginning{Folder: folder, Agent: agent}, by)
		if errors.Is(err, group.ErrNoTemplate) {
			err = problem.Case(group.ErrNoTemplate, "sallyport init "+inert.Path(g.Home), "%s", problem.Of(err).Text)
		}
		return d, err
	}))
}

// Commit asks for what a person has edited below a group's folder to be committed, and nothing else. No row is returned if there is
// nothing. A group that could not run afterwards is refused, with the place of what is wrong.
func (g *Groups) Commit(ctx context.Context, a Asked) (change.Row, error) {
	if err := g.may(a.By); err != nil {
		return change.Row{}, err
	}
	folder, err := group.ParseFolder(a.Name)
	if err != nil {
		return change.Row{}, err
	}
	row, err := g.ask(ctx, a, folder, g.shown(ctx, a.Shown, "sallyport group commit "+string(folder),
		func(p git.Project, host git.Dir, base git.OID, by group.By) (group.Draft, error) {
			d, err := group.DraftHandEdits(ctx, p, a.User, host, base, folder, by)
			if err != nil {
				return d, err
			}
			commit := d.Commit
			if len(d.Edits) == 0 {
				commit = base
			}
			tree, err := group.FindTree(ctx, host, commit, folder)
			switch {
			case len(d.Edits) == 0:
				return d, err // nothing is there, or nothing was edited
			case problem.KindOf(err) == problem.NotFound:
				return d, nil // the person has removed the group
			case err != nil:
				return d, err
			}
			_, err = group.Read(ctx, host, folder, tree)
			return d, err
		}))
	if err == nil {
		err = g.overtake(ctx, folder, row.ID)
	}
	return row, err
}

// overtake ends what was asked of a group before and waits because it could not land: its files are as asked for now.
func (g *Groups) overtake(ctx context.Context, folder group.Folder, now id.Change) error {
	var ended []change.Row
	err := g.DB.InTx(ctx, func(tx store.Tx) error {
		ended = nil
		rows, err := tx.Changes(ctx, change.Filter{Top: g.Home, States: []change.State{change.AwaitingApproval}, Limit: ledger.OpenMax})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Request.Kind != request.Group || row.Request.Group != string(folder) || row.ID == now || row.Holder != "" {
				continue
			}
			said := ledger.Withdrawn{By: audit.Host, Reason: "the group was committed anew"}
			if err := g.Withdraw(ctx, tx, &row, change.Cancel, said); err != nil {
				return err
			}
			ended = append(ended, row)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("end what was asked of the group %s before: %w", folder, err)
	}
	for _, row := range ended {
		g.Moved(row)
	}
	return nil
}

// Complete asks for what a home lacks that was made before there were groups. No row is returned if it lacks nothing.
func (g *Groups) Complete(ctx context.Context, a Asked) (change.Row, error) {
	if err := g.may(a.By); err != nil {
		return change.Row{}, err
	}
	return g.ask(ctx, a, "", g.shown(ctx, a.Shown, "sallyport init "+inert.Path(g.Home),
		func(_ git.Project, host git.Dir, base git.OID, by group.By) (group.Draft, error) {
			return group.Complete(ctx, host, base, group.Beginning{Folder: group.First}, by)
		}))
}

// drafting makes a commit upon base for what is asked for, which by's ref keeps; without edits, nothing is to be done.
type drafting func(p git.Project, host git.Dir, base git.OID, by group.By) (group.Draft, error)

// ask drafts a commit on the branch that is checked out in the home, and gives it a row of kind group.
func (g *Groups) ask(ctx context.Context, a Asked, folder group.Folder, draft drafting) (change.Row, error) {
	r := request.Request{Kind: request.Group, By: a.By, Agent: "none", Approve: request.Yes, Message: a.Message, Home: a.User, Group: string(folder)}
	return g.offer(ctx, id.NewChange(), r, draft)
}

// offer drafts a commit on the branch that is checked out in the home, and gives it a row that says r.
func (g *Groups) offer(ctx context.Context, changeID id.Change, r request.Request, draft drafting) (row change.Row, err error) {
	r.At = ledger.Now()
	if r.Project, err = git.Open(ctx, g.Home); err != nil {
		return change.Row{}, fmt.Errorf("open the repository of the home: %w", err)
	}
	site, err := g.Lander.Inspect(ctx, r.Project, "")
	if err != nil {
		return change.Row{}, err
	}
	r.Branch, r.Head, r.CheckedOut = site.Branch, site.Head, site.CheckedOut
	host, err := g.Workspaces.EnsureRepository(ctx, r.Project, r.Head)
	if err != nil {
		return change.Row{}, err
	}

	by := group.By{Ref: checkpoint.Ref(changeID, 1), Author: g.Author, Committer: g.Author}
	by.Author.At, by.Committer.At = r.At, r.At
	d, err := draft(r.Project, host, r.Head, by)
	if err != nil {
		return change.Row{}, g.forget(ctx, host, by.Ref, err)
	}
	if len(d.Edits) == 0 && r.Release == "" {
		return change.Row{}, g.forget(ctx, host, by.Ref, nil)
	}
	if d.Unseen {
		r.Approve = request.Later
	}
	r.Text = strings.TrimSpace(d.Message)
	if err := r.Check(); err != nil {
		return change.Row{}, g.forget(ctx, host, by.Ref, err)
	}
	row, err = g.Requests.Add(ctx, changeID, r)
	if err != nil {
		return change.Row{}, g.forget(ctx, host, by.Ref, err)
	}
	return row, nil
}

// forget removes the ref of a draft that no row names, if there is one, because of err.
func (g *Groups) forget(ctx context.Context, host git.Dir, ref string, err error) error {
	ctx = context.WithoutCancel(ctx)
	if made, gone := host.Resolve(ctx, ref); gone == nil && made != "" {
		if gone := host.UpdateRef(ctx, "ref:forget", ref, "", made); gone != nil {
			g.Log.Warn("a draft that nobody asks for any more keeps its ref", "ref", ref, "error", gone)
		}
	}
	return err
}

// Compute has the host keep what the draft stands on: the draft is there since the request.
func (g *Groups) Compute(ctx context.Context, row change.Row) error {
	r := row.Request
	if err := g.Workspaces.Repositories.Keep(ctx, r.Project, row.ID, r.Head); err != nil {
		return err
	}
	row.Base = string(r.Head)
	_, err := g.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return g.Move(ctx, tx, row, ledger.Move{Event: change.Computed, By: audit.Host, Digests: map[string]string{"base": row.Base}})
	})
	return err
}

// Drafted finds the commit that was drafted for a row.
func (g *Groups) Drafted(ctx context.Context, host git.Dir, row change.Row) (git.OID, error) {
	ref := checkpoint.Ref(row.ID, 1)
	made, err := host.Resolve(ctx, ref)
	if err == nil && made == "" {
		err = fmt.Errorf("%s is gone from %s", ref, host.Path)
	}
	return made, err
}
