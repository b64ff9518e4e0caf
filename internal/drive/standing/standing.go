// Package standing keeps the groups of a home: what each is as it is committed, what differs from that, and how a new group, or what a
// person has edited in one by hand, comes to be what runs.
//
// That is a change of kind group: no agent works on it and its owner has said yes by asking. It is judged by the rules, it lands by the
// journal, and it can be rolled back like any other.
package standing

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/lock"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/release"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/group"
	"sallyport/internal/who/person"
)

// Parts are what groups stand on.
type Parts struct {
	*ledger.Ledger
	Owner      person.Owner
	Home       string // whose groups they are
	Lander     *landing.Lander
	Workspaces *workspace.Manager
	Ops        disk.Ops
	Author     git.Signature // of commits of the host's own; its At is ignored
	Requests   Requests
	End        func(ctx context.Context, change id.Change,
		said ledger.Withdrawn) error // withdraws a change that has not landed; nil too where one that the host withdraws has ended by itself
	// Need says who has to approve a change that a group asks for. Errors: problem.Refused, saying why nobody can.
	Need func(ctx context.Context, tx store.Tx, r request.Request, class right.Class) (right.Need, error)
	// Promoters say whether the template is to have what a change of a group has landed.
	Promoters func(ctx context.Context, tx store.Tx, of id.Change) (right.Need, error)
	// Take keeps the programs that lie in a folder as a release of the home, and reports whether it is another than the one that runs.
	Take  func(ctx context.Context, from string, by audit.Actor) (is release.Release, new bool, err error)
	Extra live.Extra // folders of this machine that groups may be shown
}

// Groups are those of one home.
type Groups struct {
	Parts
	wishing lock.Keyed[group.Folder] // a change of itself: of several conversations of a group one at a time
	giving  lock.Keyed[id.Change]    // what a change has landed to the template: once
}

// New returns Groups.
func New(p Parts) *Groups { return &Groups{Parts: p} }

// Seen is a group as it stands.
type Seen struct {
	Folder group.Folder
	Tree   git.OID            // that its sessions run; "" if none is committed
	Group  group.Group        // as the tree has it; zero if Broken says why it cannot be read
	Skills []string           // by name
	Broken error              // with the file and the place in it
	Drift  []group.Difference // from the template as it is committed (SM-918)
	Edits  []group.HandEdit   // of the work tree, not committed: they do not run
	Memory int64              // bytes of what its agent has written, its memory and all else; only Show looks
	Mounts []live.Mounted     // folders of this machine that its next session is shown, or why not; only Show looks
	Swap   *Swap              // that the group asked for and that is open; only Show looks
}

// Swap is a change of what a group runs that has not come to its end.
type Swap struct {
	Row   change.Row
	Trial *trial.Trial // nil = it is on none
}

// List returns every group of the home as it is committed, by name, and what lies beside them and is none. user is the folder whose
// git configuration counts; "" = that of the home's owner.
func (g *Groups) List(ctx context.Context, user string) (all []Seen, odd []string, err error) {
	p, head, err := g.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	folders, odd, err := group.List(ctx, p.Common(g.Ops), head)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range folders {
		seen, err := g.see(ctx, p, head, f, user)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, seen)
	}
	return all, odd, nil
}

// Show returns one group. One that is in the work tree only has no tree. Errors: problem.NotFound.
func (g *Groups) Show(ctx context.Context, folder group.Folder, user string) (Seen, error) {
	p, head, err := g.open(ctx)
	if err != nil {
		return Seen{}, err
	}
	s, err := g.see(ctx, p, head, folder, user)
	if err == nil {
		s.Memory, err = g.remembers(ctx, folder)
		s.Mounts = g.Extra.Find(s.Group.Runner.Wishes())
	}
	if err == nil {
		s.Swap, err = g.openSwap(ctx, folder)
	}
	return s, err
}

// Runner is how a group runs, as its files are committed.
func (g *Groups) Runner(ctx context.Context, of group.Folder) (config.Runner, error) {
	p, head, err := g.open(ctx)
	if err != nil {
		return config.Runner{}, err
	}
	d := p.Common(g.Ops)
	tree, err := group.FindTree(ctx, d, head, of)
	if err != nil {
		return config.Runner{}, err
	}
	runs, err := group.Read(ctx, d, of, tree)
	return runs.Runner, err
}

// open finds the home's repository and the commit that is checked out in it.
func (g *Groups) open(ctx context.Context) (git.Project, git.OID, error) {
	p, err := git.Open(ctx, g.Home)
	if err != nil {
		return p, "", fmt.Errorf("open the repository of the home: %w", err)
	}
	head, err := p.Worktree(g.Ops).Resolve(ctx, "HEAD^{commit}")
	if err == nil && head == "" {
		err = problem.Errorf(problem.NotFound, "git -C "+g.Home+" log", "nothing is committed in the home %q", g.Home)
	}
	return p, head, err
}

// see looks at one group.
func (g *Groups) see(ctx context.Context, p git.Project, head git.OID, folder group.Folder, user string) (s Seen, err error) {
	s.Folder = folder
	d := p.Common(g.Ops)
	tree, absent := group.FindTree(ctx, d, head, folder)
	if absent != nil && problem.KindOf(absent) != problem.NotFound {
		return s, absent
	}
	if s.Edits, err = group.FindHandEdits(ctx, p, user, head, folder); err != nil {
		return s, err
	}
	if absent != nil {
		if len(s.Edits) == 0 {
			return s, absent
		}
		return s, nil
	}

	s.Tree = tree
	if s.Group, s.Broken = group.Read(ctx, d, folder, tree); s.Broken != nil && !ofThePerson(s.Broken) {
		return s, s.Broken
	}
	if s.Skills, err = group.Skills(ctx, d, tree); err != nil {
		return s, err
	}
	if s.Drift, err = group.CompareTemplate(ctx, d, head, folder); err != nil && !ofThePerson(err) {
		return s, err
	}
	return s, nil
}

// ofThePerson reports whether an error is about what a file says, and not the machine's.
func ofThePerson(err error) bool {
	return problem.KindOf(err) == problem.Refused
}

// remembers is how much a group's agent has written.
func (g *Groups) remembers(ctx context.Context, folder group.Folder) (int64, error) {
	at := filepath.Join(g.Home, ".state", "groups", string(folder), "agent")
	all, err := beneath.ExtentOf(ctx, at, sandbox.FoldersMax) // each folder in another takes a descriptor, which all need
	return all.Bytes, err
}

// parse reads the name that a new group is to have; the way out of a bad one is a good one.
func (g *Groups) parse(ctx context.Context, name string) (group.Folder, error) {
	folder, err := group.ParseFolder(name)
	if err == nil || strings.TrimSpace(name) == "" {
		return folder, err
	}
	var others []group.Folder
	if p, head, err := g.open(ctx); err == nil {
		others, _, _ = group.List(ctx, p.Common(g.Ops), head) // only for a proposal
	}
	return "", problem.Errorf(problem.KindOf(err), "sallyport group create "+string(group.ChooseFolder(name, others)), "%s", problem.Of(err).Text)
}

// runs reads the agent that a new group is to have; "" is the template's.
func runs(agent string) (config.RunnerAgent, error) {
	if agent == "" {
		return "", nil
	}
	return config.ParseRunnerAgent(agent)
}

// may refuses who is not the home's owner: no group comes to be, and none is changed, without their word (CH-907).
func (g *Groups) may(by audit.Actor) error { return g.Owner.MayDecide(by) }
