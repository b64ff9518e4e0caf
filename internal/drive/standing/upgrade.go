package standing

import (
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// Upgrade is another sallyport that a person brings.
type Upgrade struct {
	By      audit.Actor
	From    string // absolute: the folder that has its programs
	Group   string // whose conversation has the card and the trial; "" = that of the first group by name
	Approve request.Approve
	Account string // whose conversation that is
}

// Upgrade asks for the host to run by the programs that lie in a folder. It is a change of the host like any other, without a file that moves:
// rehearsed before anybody is asked, approved with typed words, on trial under its keeper, with a code and a way back. No row is returned if
// the host runs by them already.
//
// Errors: problem.Conflict while another change of the group is under way; problem.Refused if no keeper can judge a trial of the host, or
// the programs do not run here; problem.NotFound if the home has no such group, or none.
func (g *Groups) Upgrade(ctx context.Context, a Upgrade) (row change.Row, err error) {
	if err := g.may(a.By); err != nil {
		return row, err
	}
	folder, err := g.askedIn(ctx, a.Group)
	if err != nil {
		return row, err
	}
	return g.beside(ctx, folder, func() (change.Row, error) { return g.upgrade(ctx, folder, a) })
}

func (g *Groups) upgrade(ctx context.Context, folder group.Folder, a Upgrade) (change.Row, error) {
	r := request.Request{Kind: request.Swap, By: a.By, Agent: "none", Approve: a.Approve, Group: string(folder)}
	if err := g.Approvable(ctx, r, right.Host); err != nil {
		return change.Row{}, err
	}
	is, other, err := g.Take(ctx, a.From, a.By)
	if err != nil || !other {
		return change.Row{}, err
	}

	chat, err := g.talksIn(ctx, folder, a.Account)
	if err != nil {
		return change.Row{}, err
	}
	r.Chat, r.Release = chat.ID, is.Digest
	return g.offer(ctx, id.NewChange(), r, func(_ git.Project, _ git.Dir, base git.OID, _ group.By) (group.Draft, error) {
		return group.Draft{Base: base, Commit: base, Message: upgradeWords(is, a.From)}, nil
	})
}

// askedIn is the group in whose conversation somebody is asked about the host.
func (g *Groups) askedIn(ctx context.Context, name string) (group.Folder, error) {
	p, head, err := g.open(ctx)
	if err != nil {
		return "", err
	}
	d := p.Common(g.Ops)
	if name == "" {
		all, _, err := group.List(ctx, d, head)
		if err == nil && len(all) == 0 {
			err = problem.Errorf(problem.NotFound, "sallyport init "+inert.Path(g.Home),
				"the home %q has no group, and a change of the host is confirmed in the conversation of one", g.Home)
		}
		if err != nil {
			return "", err
		}
		return all[0], nil
	}
	folder, err := group.ParseFolder(name)
	if err == nil {
		_, err = group.FindTree(ctx, d, head, folder)
	}
	return folder, err
}

// upgradeWords say what an upgrade is.
func upgradeWords(is release.Release, from string) string {
	return fmt.Sprintf("Upgrade sallyport to build %s\n\nRelease %s, from %s.\n", inert.Short(is.Build, 60), is.Digest, inert.Path(from))
}
