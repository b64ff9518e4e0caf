package standing

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// Wish is what the agent of a group wants changed in what it runs.
type Wish struct {
	Change  id.Change // what it is to be: wishing for it again is wishing for it once
	Group   group.Folder
	Chat    id.Chat
	Message id.Message  // whose sender wishes it; "" = nobody does
	Heard   []string    // the accounts whose words the agent answered when it asked, platform:account
	Text    string      // the agent's own words, for the agent that makes the change
	Dev     string      // what that agent is called; "" = as the host names it
	By      audit.Actor // the agent that asks
}

// RequestSwap begins a change of what a group runs: an agent works on a copy, and a person approves what lands. An earlier one of the
// same group that nobody has approved yet ends, visibly (SM-021).
//
// Errors: problem.Conflict while an earlier one lands or is on trial; problem.NotFound if there is no such group; problem.Refused if it
// cannot run; what an agent that is not installed, or has no key, says.
func (g *Groups) RequestSwap(ctx context.Context, w Wish) (row change.Row, err error) {
	err = g.wishing.Alone(ctx, w.Group, func() error {
		row, err = g.requestSwap(ctx, w)
		return err
	})
	return row, err
}

func (g *Groups) requestSwap(ctx context.Context, w Wish) (change.Row, error) {
	if row, err := g.Row(ctx, w.Change); problem.KindOf(err) != problem.NotFound {
		return row, err // it was wished for before
	}
	open, err := g.openSwaps(ctx, w.Group)
	if err != nil {
		return change.Row{}, err
	}
	for _, row := range open {
		if err := Pending(row); err != nil {
			return change.Row{}, err
		}
	}
	r, err := g.swapOf(ctx, w)
	if err != nil {
		return change.Row{}, err
	}
	if _, err := g.Requests.Runnable(w.Change, r, "sallyport agent list"); err != nil {
		return change.Row{}, err
	}
	if err := g.Approvable(ctx, r, right.Group); err != nil {
		return change.Row{}, err
	}
	for _, row := range open {
		if err := g.End(ctx, row.ID, ledger.Withdrawn{By: audit.Host, Reason: "the group asked for another change: " + string(w.Change)}); err != nil {
			return change.Row{}, err
		}
	}
	return g.Requests.Add(ctx, w.Change, r)
}

// Pending is why another wish does not end a change that somebody has approved; nil if it does.
func Pending(row change.Row) error {
	switch row.State {
	case change.Landing, change.InTrial, change.RollbackFailed:
		return stillPending(row)
	}
	return nil
}

func stillPending(row change.Row) error {
	return problem.Errorf(problem.Conflict, "sallyport change show "+string(row.ID),
		"previous swap still pending — resolve it first: %s is %s", row.ID, row.State.Words())
}

// Approvable refuses what nobody could approve by what it reaches: an agent would work for nothing (SM-090).
func (g *Groups) Approvable(ctx context.Context, r request.Request, class right.Class) error {
	return g.DB.Read(ctx, func(tx store.Tx) error {
		_, err := g.Need(ctx, tx, r, class)
		return err
	})
}

// devPrefix begins the names of the agents that make changes of what groups run.
const devPrefix = "dev-"

// openSwaps are the changes of what a group runs that have not come to their end, the newest first: one, and any that is being ended.
func (g *Groups) openSwaps(ctx context.Context, of group.Folder) ([]change.Row, error) {
	all, err := g.Ledger.List(ctx, change.Filter{Swaps: string(of), States: change.Open(), Limit: ledger.OpenMax})
	if err != nil {
		return nil, fmt.Errorf("find the changes of the group %s: %w", of, err)
	}
	return all, nil
}

// LastSwap is the change that a group asked for last. Errors: problem.NotFound if it never did.
func (g *Groups) LastSwap(ctx context.Context, of group.Folder) (row change.Row, err error) {
	err = g.DB.Read(ctx, func(tx store.Tx) error {
		var found bool
		row, found, err = ledger.LastSwap(ctx, tx, of)
		if err == nil && !found {
			err = problem.Errorf(problem.NotFound, "sallyport change list", "the group %s has asked for no change of itself", of)
		}
		return err
	})
	return row, err
}

// openSwap is the change of what a group runs that has not come to its end; nil if there is none.
func (g *Groups) openSwap(ctx context.Context, of group.Folder) (*Swap, error) {
	all, err := g.openSwaps(ctx, of)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	s := &Swap{Row: all[0]}
	err = g.DB.Read(ctx, func(tx store.Tx) error {
		t, ok, err := tx.Trial(ctx, s.Row.ID)
		if ok {
			s.Trial = &t
		}
		return err
	})
	return s, err
}

// swapOf is a wish as a request.
func (g *Groups) swapOf(ctx context.Context, w Wish) (r request.Request, err error) {
	r = request.Request{
		Kind: request.Swap, By: w.By, At: ledger.Now(), Text: strings.TrimSpace(w.Text), Approve: request.Later,
		Group: string(w.Group), Chat: w.Chat, Wish: w.Message, Heard: w.Heard, Dev: w.Dev, Path: os.Getenv("PATH"), Home: os.Getenv("HOME"),
	}
	if r.Dev == "" {
		r.Dev = strings.TrimPrefix(string(w.Change), "chg-")
	}
	if !strings.HasPrefix(r.Dev, devPrefix) { // no agent is called as a person is
		r.Dev = devPrefix + r.Dev
	}
	if r.Project, err = git.Open(ctx, g.Home); err != nil {
		return r, fmt.Errorf("open the repository of the home: %w", err)
	}
	site, err := g.Lander.Inspect(ctx, r.Project, "")
	if err != nil {
		return r, err
	}
	r.Branch, r.Head, r.CheckedOut = site.Branch, site.Head, site.CheckedOut

	d := r.Project.Common(g.Ops)
	tree, err := group.FindTree(ctx, d, r.Head, w.Group)
	if err != nil {
		return r, err
	}
	runs, err := group.Read(ctx, d, w.Group, tree)
	if err != nil {
		return r, err
	}
	r.Agent, r.Model, r.Rounds = string(runs.Runner.Agent), string(runs.Runner.Model), runs.Runner.Rounds
	return r, r.Check()
}

// Binds is what binds the agent of a swap as it binds its group's, by the group's files of now (SM-025). Tools have the names of their
// agent: if the group has another by now, those that were off when the change was asked for stay off for the one that works.
func (g *Groups) Binds(ctx context.Context, row change.Row) (config.Runner, error) {
	r := row.Request
	now, err := g.Runner(ctx, group.Folder(r.Group))
	if err != nil || string(now.Agent) == r.Agent {
		return now, err
	}
	host, err := g.Workspaces.EnsureRepository(ctx, r.Project, r.Head)
	if err != nil {
		return now, err
	}
	tree, err := group.FindTree(ctx, host, r.Head, group.Folder(r.Group))
	if err != nil {
		return now, err
	}
	then, err := group.Read(ctx, host, group.Folder(r.Group), tree)
	now.ToolsOff = slices.Concat(now.ToolsOff, then.Runner.ToolsOff)
	return now, err
}

// Overlay makes the commit that a swap is worked on, kept as the base of its change.
func (g *Groups) Overlay(ctx context.Context, row change.Row) (git.OID, error) {
	host, err := g.Workspaces.EnsureRepository(ctx, row.Request.Project, row.Request.Head)
	if err != nil {
		return "", err
	}
	by := group.By{Ref: repository.BaseRef(row.ID), Author: g.Author, Committer: g.Author}
	by.Author.At, by.Committer.At = row.Request.At, row.Request.At
	return group.Overlay(ctx, host, row.Request.Head, group.Folder(row.Request.Group), by)
}

// Map brings what the agent of a swap has proposed, a commit upon the overlay, where it belongs in the home. What the group would run then
// is read as at a start: one that cannot run is refused, with the place of what is wrong.
func (g *Groups) Map(ctx context.Context, row change.Row, commit git.OID) (group.Mapping, error) {
	r := row.Request
	host, err := g.Workspaces.EnsureRepository(ctx, r.Project, r.Head, git.OID(row.Base))
	if err != nil {
		return group.Mapping{}, err
	}
	by := group.By{Ref: repository.RefRoot(row.ID) + "proposal", Author: g.Author, Committer: g.Author}
	by.Author.At, by.Committer.At = r.At, r.At
	m, err := group.Map(ctx, host, group.Folder(r.Group), git.OID(row.Base), commit, r.Head, by)
	if err != nil {
		return m, err
	}
	if err := group.Check(ctx, host, group.Folder(r.Group), m); err != nil { // what it says to do next is for what has landed
		return m, problem.Errorf(problem.KindOf(err), "sallyport chat "+r.Group, "%w", err)
	}
	return m, nil
}

// Promote asks for the template to have what a change of a group has landed in its runner and skills (SM-152). No row is returned if the
// template has it already, and the one that brings it there if that is under way. It is told of where the change was asked for. Errors:
// person.ErrNotOwner if it is none of theirs.
func (g *Groups) Promote(ctx context.Context, a Asked, of id.Change) (row change.Row, err error) {
	err = g.giving.Alone(ctx, of, func() error {
		row, err = g.promote(ctx, a, of)
		return err
	})
	return row, err
}

func (g *Groups) promote(ctx context.Context, a Asked, of id.Change) (change.Row, error) {
	var row, begun change.Row
	var edits []git.Edit
	err := g.DB.Read(ctx, func(tx store.Tx) (err error) {
		if row, err = tx.Change(ctx, of); err != nil {
			return err
		}
		need, err := g.Promoters(ctx, tx, of)
		if err != nil {
			return err
		}
		if a.By.Kind != "person" || a.By.Person == "" || !slices.Contains(need.May, a.By.Person) {
			return fmt.Errorf("promote %s: %w", of, problem.Case(person.ErrNotOwner, "sallyport change show "+string(of), "%q has not approved it", a.By.Name))
		}
		l, ok, err := tx.LandingOf(ctx, of)
		if err == nil && (!ok || row.State != change.Finalized || row.Request.Kind != request.Swap) {
			err = problem.Errorf(problem.Conflict, "sallyport change show "+string(of),
				"%s has nothing that the template could have: it is %s", of, row.State.Words())
		}
		edits = l.Edits
		if err == nil {
			begun, err = g.promoting(ctx, tx, of)
		}
		return err
	})
	if err != nil {
		return change.Row{}, err
	}
	if begun.ID != "" { // a daemon may die between the request and its note of that
		return begun, nil
	}
	r := request.Request{Kind: request.Group, By: a.By, Agent: "none", Approve: request.Yes, Promotes: of, Chat: row.Request.Chat}
	return g.offer(ctx, id.NewChange(), r, func(_ git.Project, host git.Dir, base git.OID, by group.By) (group.Draft, error) {
		return group.Promote(ctx, host, base, group.Folder(row.Request.Group), of, edits, by)
	})
}

// promoting finds the change under way that brings the template what another has landed; a row without an id if there is none.
func (g *Groups) promoting(ctx context.Context, tx store.Tx, of id.Change) (change.Row, error) {
	open, err := tx.Changes(ctx, change.Filter{Top: g.Home, States: change.Open(), Limit: ledger.OpenMax})
	for _, row := range open {
		if row.Request.Promotes == of && !row.Cancel {
			return row, err
		}
	}
	return change.Row{}, err
}
