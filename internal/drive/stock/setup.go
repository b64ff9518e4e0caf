package stock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/request"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

// SetupFailed says that a command of a setup did not succeed.
type SetupFailed struct {
	Command string
	Run     live.Ran
	closed  bool // the registries were not in reach
}

func (f *SetupFailed) Error() string {
	text := fmt.Sprintf("the setup %q failed: %s", f.Command, f.Run.Why())
	if last := f.Run.LastLines(3); last != "" {
		text += "; its last lines: " + last
	}
	if f.unreached() {
		text += "; it reaches no package registry, for a setup of .sallyport.yaml needs the owner's consent to that"
	}
	return text
}

// unreached reports whether a setup to which the registries were closed speaks of a network that it did not find.
func (f *SetupFailed) unreached() bool { return f.closed && sandbox.Offline(f.Run.Tail) }

// SetUp returns what the setup leaves on a commit, which stays until release is called; none if there is no setup. It runs once for
// all bases that depend on the same, and follow the one that it ran on. On a tree that nobody has approved it runs for that commit
// alone: what an agent proposes to depend on is there for its own checks, and for nobody else.
//
// Errors: *SetupFailed.
func (s *Stocks) SetUp(ctx context.Context, w work.Work, commit git.OID) (left layer.Stock, release func(), err error) {
	commands := w.Setups()
	if len(commands) == 0 {
		return layer.Stock{}, func() {}, nil
	}
	tree, err := w.Host.Tree(ctx, commit)
	if err != nil {
		return layer.Stock{}, nil, err
	}
	needs, err := dependencies(ctx, w.Host, commit, commands)
	if err != nil {
		return layer.Stock{}, nil, err
	}
	reach := fmt.Sprintf("%q %v", w.Row.Request.Setup, slices.Contains(w.Row.Request.Egress, registries)) // without them it may leave something else
	family := s.family(w, layer.Setup, commands, reach)
	left, release, err = s.Workspaces.Stocks.Latest(family, func(at layer.Stock) (bool, error) {
		if at.ID.Family != family || at.Note.Needs != needs {
			return false, nil
		}
		fits, err := layer.Fits(ctx, w.Host, at, tree)
		if err != nil || !fits {
			return false, err
		}
		return s.serves(ctx, w.Host, at.Note.Base, commit)
	})
	if err != nil || !left.None() {
		return left, release, err
	}

	base, err := ground(ctx, w)
	if err != nil {
		return layer.Stock{}, nil, err
	}
	own := git.OID(w.Row.Base)
	switch {
	case commit == base:
		return s.setUpOn(ctx, w, family, needs, base)
	case own == base:
		left, release, err = s.setUpBelow(ctx, w, setUp{family, needs, needs, own}, commit)
	default: // with uncommitted files, say: it is for nobody else
		left, release, err = s.setUpBelow(ctx, w, setUp{family, needs, "", own}, commit)
	}
	if err != nil || !left.None() {
		return left, release, err
	}
	return s.setUpOn(ctx, w, family, "", commit)
}

// setUp is a stock that may be made.
type setUp struct {
	family string
	needs  string // of what it is made for
	serves string // what others it is for depend on; "" = it is for none
	on     git.OID
}

// setUpBelow returns what the setup leaves on a commit that another follows, which is made if it is not there; none if the other does not
// follow it, depends on something else, or has something in its place.
func (s *Stocks) setUpBelow(ctx context.Context, w work.Work, m setUp, commit git.OID) (layer.Stock, func(), error) {
	none := func() {}
	same, err := s.serves(ctx, w.Host, m.on, commit)
	if err != nil || !same {
		return layer.Stock{}, none, err
	}
	below, err := dependencies(ctx, w.Host, m.on, w.Setups())
	if err != nil || below != m.needs {
		return layer.Stock{}, none, err
	}
	tree, err := w.Host.Tree(ctx, commit)
	if err != nil {
		return layer.Stock{}, none, err
	}
	left, release, err := s.setUpOn(ctx, w, m.family, m.serves, m.on)
	if err != nil {
		return layer.Stock{}, none, err
	}
	if fits, err := layer.Fits(ctx, w.Host, left, tree); err != nil || !fits {
		release()
		return layer.Stock{}, none, err
	}
	return left, release, nil
}

// setUpOn returns the stock that the setup makes on a commit, which is made if it is not there; needs is "" if it is for that commit alone.
func (s *Stocks) setUpOn(ctx context.Context, w work.Work, family, needs string, on git.OID) (layer.Stock, func(), error) {
	name := layer.StockID{Family: family, Generation: generation(needs, string(on))}
	if left, release, err := s.Workspaces.Stocks.Open(name); err != nil || !left.None() {
		return left, release, err
	}
	tree, err := w.Host.Tree(ctx, on)
	if err != nil {
		return layer.Stock{}, nil, err
	}
	n := layer.StockNote{
		Kind: layer.Setup, Project: path.Base(w.Host.Path), Branch: w.Row.Request.Branch, Base: on, Tree: tree,
		Commands: w.Setups(), Needs: needs, Made: ledger.Now(),
	}
	left, release, err := s.Workspaces.Stocks.Make(ctx, name, n, w.Spec.Owner, layer.Stock{}, func(room layer.Room) error {
		return s.runSetup(ctx, w, room, on)
	})
	var failed *SetupFailed
	if err != nil && !errors.As(err, &failed) {
		err = fmt.Errorf("run the setup on %.12s: %w", on, err)
	}
	return left, release, err
}

// runSetup runs the commands, one after the other, on a throw-away workspace, from which room takes what they leave.
func (s *Stocks) runSetup(ctx context.Context, w work.Work, room layer.Room, on git.OID) error {
	shown, err := s.Opener.Show(ctx, w, layer.Stock{}, on)
	if err != nil {
		return err
	}
	defer s.Opener.Discard(ctx, shown)
	for _, command := range w.Setups() {
		s.Feed.Publish(change.Notice{Change: w.Row.ID, At: ledger.Now(), Kind: "setup", Text: command})
		name := id.NewSession("setup")
		own := slices.Contains(w.Row.Request.Setup, command)
		way, err := s.Ways.Open(ctx, w.Subject(), live.Outgoing{Session: name, Setup: true, Fetch: own})
		if err != nil {
			return err
		}
		run, err := s.Runner.Run(ctx, w.Subject(), live.Command{Name: name, Line: command, Way: way, Tree: shown.Tree, Cache: room.Cache, Kept: setupBytes})
		way.Close()
		if err != nil {
			return err
		}
		if !run.OK() {
			failed := &SetupFailed{command, run, !way.Registries && !own}
			s.keepSetup(w.Row.ID, failed)
			return s.setupAgain(ctx, w.Row, own, failed)
		}
	}
	return room.Take(ctx, named{shown, s.Secrets})
}

// named is a workspace of which no path is written down with a secret in it that is left out of a stock. What stays has the name that it has.
type named struct {
	layer.Source
	secrets *secret.Scanner
}

func (n named) New(ctx context.Context) (ignored, others []string, err error) {
	ignored, others, err = n.Source.New(ctx)
	for i := range min(len(others), layer.LeftOutMax) {
		others[i] = n.secrets.Name(others[i])
	}
	return ignored, others, err
}

// setupAgain says of a failed setup how a person goes on once it is mended.
func (s *Stocks) setupAgain(ctx context.Context, row change.Row, own bool, failed *SetupFailed) error {
	if r := row.Request; r.Kind == request.Swap {
		return problem.Errorf(problem.Refused, "sallyport chat "+r.Group,
			"%w. Mend it and commit, and ask for the change anew in a conversation of the group %s", failed, r.Group)
	}
	begun, err := s.Sessions(ctx, row.ID)
	if err != nil {
		return err
	}
	if len(begun) > 0 {
		last := "sallyport resume " + string(begun[len(begun)-1].ID)
		return problem.Errorf(problem.Refused, last, "%w. What its agent has done is kept, and the setup runs again when it is resumed", failed)
	}
	next := "sallyport change redo " + string(row.ID)
	mended := "Its agent had not begun. Mend it and commit; change redo runs it again, on the branch as it is then"
	switch {
	case own:
		next = "sallyport run --setup COMMAND"
		mended = "Its agent had not begun: nothing is lost. For another --setup run the request again; change redo runs this one again"
	case failed.unreached():
		mended = "Its agent had not begun. Write `egress: [registries]` into " + inert.Path(filepath.Join(s.Runner.Home, "sallyport.yaml")) +
			", and change redo runs it again; or run the request again with --egress registries"
	}
	return problem.Errorf(problem.Refused, next, "%w. %s; change log shows all that it said", failed, mended)
}

// Lost says which files a setup wrote that agent and checks do not find, for they could become part of a change; "" if there are none.
func Lost(n layer.StockNote) string {
	if n.Lost == 0 {
		return ""
	}
	const named = 5
	shown := n.LeftOut[:min(len(n.LeftOut), named)]
	text := fmt.Sprintf("the setup %q wrote %s not ignored by git; agent and checks do not find what it wrote there: %s", n.Commands,
		paths(n.Lost), strings.Join(shown, ", "))
	if more := n.Lost - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// LostBy is Lost of the setup that a change's workspace shows.
func (s *Stocks) LostBy(ctx context.Context, spec workspace.Spec) ([]string, error) {
	ws, err := s.Workspaces.Open(ctx, spec)
	if problem.KindOf(err) == problem.NotFound { // of a revert, or it has been removed
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	left, err := s.Workspaces.StockOf(ws)
	if said := Lost(left.Note); said != "" && err == nil {
		return []string{said}, nil
	}
	return nil, err
}

// registries is the word for package registries among what a person lets a change reach.
const registries = "registries"

// manifests are names of files that say what a tree depends on.
var manifests = []string{
	"package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", ".npmrc",
	"go.mod", "go.sum", "go.work", "go.work.sum", "Cargo.toml", "Cargo.lock",
	"pyproject.toml", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "pylock.toml", "setup.py", "setup.cfg",
	"composer.json", "composer.lock", "Gemfile", "Gemfile.lock", "mix.exs", "mix.lock", "packages.lock.json", "gradle.lockfile", "flake.lock",
}

// manifest reports whether a path says what a tree depends on.
func manifest(p string) bool {
	name := path.Base(p)
	return slices.Contains(manifests, name) || strings.HasPrefix(name, "requirements") && (strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".in"))
}

// dependencies is a digest of the paths and contents of a commit's files that say what it depends on, and of those that the setup
// names. Where there is none it is of the whole tree: nothing says when what the setup left has grown old.
func dependencies(ctx context.Context, host git.Dir, commit git.OID, commands []string) (string, error) {
	var all []string
	err := host.List(ctx, commit, func(p string, e git.Entry, _ int64) error {
		if manifest(p) {
			all = append(all, p, string(e.OID))
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("find what %.12s depends on: %w", commit, err)
	}
	if len(all) == 0 {
		tree, err := host.Tree(ctx, commit)
		return digest("tree", string(tree)), err
	}
	var named []string
	for _, command := range commands {
		for word := range strings.FieldsSeq(command) {
			if p := path.Clean(word); fsPath(p) {
				named = append(named, p)
			}
		}
	}
	found, err := host.Lookup(ctx, commit, named)
	if err != nil {
		return "", fmt.Errorf("find what the setup runs of %.12s: %w", commit, err)
	}
	for i, e := range found {
		if !e.Absent() {
			all = append(all, named[i], string(e.OID))
		}
	}
	return digest(all...), nil
}

// fsPath reports whether a word may be a path in a tree.
func fsPath(p string) bool {
	return p != "." && !path.IsAbs(p) && !strings.HasPrefix(p, "../") && p != ".." && !strings.HasPrefix(p, "-")
}

func paths(n int) string {
	if n == 1 {
		return "1 path"
	}
	return strconv.Itoa(n) + " paths"
}
