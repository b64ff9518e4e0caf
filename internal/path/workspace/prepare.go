package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/leftover"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/repository"
	"sallyport/internal/port/sandbox"
)

// record lies in every workspace, out of any sandbox's reach: what it was made as.
type record struct {
	Strategy Strategy      `json:"strategy"`
	Base     git.OID       `json:"base"`             // commit
	Tree     git.OID       `json:"tree"`             // of the layer below
	Layers   []git.OID     `json:"layers,omitempty"` // what that is made of, lowest first; none: itself alone
	Ignore   git.OID       `json:"ignore,omitempty"` // which of them has the .gitignore files; "" = Tree's
	Owner    sandbox.Owner `json:"owner"`
	Objects  []string      `json:"objects"`         // folders that it is shown
	Setup    string        `json:"setup,omitempty"` // name of the stock that is seen over the layers
}

const recordName = "workspace.json"

// Prepare makes a workspace, or returns the one there is with all that was done in it.
// What a crash left half made is removed first.
//
// Errors: problem.Conflict if there is one on another base.
func (m *Manager) Prepare(ctx context.Context, spec Spec) (Workspace, error) {
	path := m.home(spec.Change)
	var w Workspace
	err := m.busy.Alone(ctx, path, func() error {
		var err error
		if w, err = m.open(spec); err == nil || !errors.Is(err, os.ErrNotExist) {
			return err
		}
		release, err := m.make(ctx, spec, whole.Fresh(path))
		if err != nil {
			return fmt.Errorf("make the workspace of %s: %w", spec.Change, err)
		}
		defer release()
		if err := m.ops.Do("workspace:commit", func() error { return os.Rename(whole.Fresh(path), path) }); err != nil {
			return err
		}
		w, err = m.open(spec)
		return err
	})
	return w, err
}

// Open returns a workspace that was prepared. Errors: problem.NotFound, problem.Conflict if it is on another base.
func (m *Manager) Open(_ context.Context, spec Spec) (Workspace, error) {
	w, err := m.open(spec)
	if errors.Is(err, os.ErrNotExist) {
		return Workspace{}, problem.Errorf(problem.NotFound, "sallyport change show "+string(spec.Change), "%s has no workspace", spec.Change)
	}
	return w, err
}

// MakeAnew throws away what was done in a workspace and returns it as it was at first.
// No sandbox may be running on it. A crash leaves the old one or the new one.
func (m *Manager) MakeAnew(ctx context.Context, spec Spec) (Workspace, error) {
	return m.replace(ctx, spec, func(string) error { return nil })
}

// replace makes a new workspace, fills the folder that it is in so far, and exchanges it for the old one.
func (m *Manager) replace(ctx context.Context, spec Spec, fill func(path string) error) (Workspace, error) {
	path := m.home(spec.Change)
	var w Workspace
	err := m.busy.Alone(ctx, path, func() error {
		release, err := m.make(ctx, spec, whole.Fresh(path))
		if err == nil {
			defer release()
			err = fill(whole.Fresh(path))
		}
		if err != nil {
			return fmt.Errorf("make the workspace of %s: %w", spec.Change, err)
		}
		err = m.ops.Do("workspace:commit", func() error {
			if !whole.Exists(path) {
				return os.Rename(whole.Fresh(path), path)
			}
			return unix.Renameat2(unix.AT_FDCWD, whole.Fresh(path), unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
		})
		if err != nil {
			return err
		}
		if err := whole.Remove(m.ops, "workspace:clear", whole.Fresh(path)); err != nil {
			return err
		}
		w, err = m.open(spec)
		return err
	})
	return w, err
}

// Remove takes a workspace away with all that is in it; absence is success. Checkpoints stay.
func (m *Manager) Remove(ctx context.Context, change id.Change) error {
	err := m.discard(ctx, m.home(change))
	select {
	case m.worn <- struct{}{}:
	default: // it was said already
	}
	return err
}

// discard removes a workspace's folder in such a way that a crash leaves no half of it under its name.
func (m *Manager) discard(ctx context.Context, path string) error {
	return m.busy.Alone(ctx, path, func() error {
		temp := whole.Fresh(path)
		if err := whole.Remove(m.ops, "workspace:clear", temp); err != nil {
			return err
		}
		if !whole.Exists(path) {
			return nil
		}
		if r, err := readRecord(path); err == nil {
			if err := m.Layers.NoteUse(r.Tree); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		if err := m.ops.Do("workspace:retire", func() error { return os.Rename(path, temp) }); err != nil {
			return err
		}
		return whole.Remove(m.ops, "workspace:remove", temp)
	})
}

// Left tells what a crash left half made, and what has been set aside to be removed when there is time.
func (m *Manager) Left(ctx context.Context) ([]leftover.Item, error) {
	half, err := leftover.Names{Folder: m.root, Goes: leftover.AtStart, Ops: m.ops, Op: "sweep:remove", Patterns: []string{
		".probe-*", "probe-*", // where probes, a sandbox's too, try what works
		"repos/.new-*", repository.HalfMadeBases, "layers/.new-*", "stock/.new-*", "workspaces/.new-*", "shown/*", "dirty/*",
	}}.Left(ctx)
	if err != nil {
		return nil, err
	}
	aside, err := leftover.Names{Folder: m.root, Goes: leftover.AtOnce, Ops: m.ops, Op: "sweep:remove", Patterns: []string{"gone/*"}}.Left(ctx)
	return append(half, aside...), err
}

// Changes returns the changes that have a workspace.
func (m *Manager) Changes() ([]id.Change, error) {
	entries, err := os.ReadDir(filepath.Join(m.root, "workspaces"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var there []id.Change
	for _, e := range entries {
		if change, err := id.ParseChange(e.Name()); err == nil {
			there = append(there, change)
		}
	}
	return there, err
}

// open reads the record of a workspace; os.ErrNotExist if there is none.
func (m *Manager) open(spec Spec) (Workspace, error) {
	path := m.home(spec.Change)
	r, err := readRecord(path)
	if err != nil {
		return Workspace{}, err
	}
	if r.Base != spec.Base || r.Owner != spec.Owner {
		return Workspace{}, problem.Errorf(problem.Conflict, "sallyport change show "+string(spec.Change),
			"the workspace of %s is on base %.12s for uid %d, not on %.12s for uid %d", spec.Change, r.Base, r.Owner.UID, spec.Base, spec.Owner.UID)
	}
	return m.workspace(spec, path, r), nil
}

func readRecord(path string) (record, error) {
	var r record
	data, err := os.ReadFile(filepath.Join(path, recordName))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read the record of workspace %s: %w", filepath.Base(path), err)
	}
	return r, nil
}

// workspace describes the folder at path that r tells of.
func (m *Manager) workspace(spec Spec, path string, r record) Workspace {
	chain, ignore := r.Layers, r.Ignore
	if len(chain) == 0 {
		chain, ignore = []git.OID{r.Tree}, r.Tree
	}
	below := m.Layers.Of(chain, ignore)
	spec.Setup = r.Setup
	w := Workspace{Spec: spec, host: m.Host(spec.Project), Strategy: r.Strategy, layers: below.Trees, ignore: below.Ignore, path: path}
	w.Tree.GitDir = filepath.Join(path, "scratch", ".git")
	w.Tree.Objects = m.binds(r.Objects)
	if r.Strategy == Overlay {
		w.Tree.Layers = below.Trees
		w.Tree.Upper, w.Tree.Work = filepath.Join(path, "upper"), filepath.Join(path, "work")
		if r.Setup != "" {
			w.Tree.Layers = append(slices.Clone(below.Trees), m.Stocks.Tree(r.Setup))
		}
	} else {
		w.Tree.Dir = filepath.Join(path, "tree")
	}
	return m.reads(w)
}

// reads has a workspace read by this manager's operations and limits, whoever opened it.
func (m *Manager) reads(w Workspace) Workspace {
	w.ops, w.limits = m.ops, m.limits
	return w
}

// make makes a workspace at path, whose leftovers it removes first. Its layer and its base stay until release is called:
// not before the workspace has its name.
func (m *Manager) make(ctx context.Context, spec Spec, path string) (release func(), err error) {
	leave := m.Repositories.Hold(spec.Base)
	defer func() {
		if err != nil {
			leave()
		}
	}()
	host, err := m.EnsureRepository(ctx, spec.Project, spec.Base)
	if err != nil {
		return nil, err
	}
	tree, err := host.Tree(ctx, spec.Base)
	if err != nil {
		return nil, err
	}
	below, drop, err := m.Layers.Open(ctx, host, tree, spec.Base)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			drop()
		}
	}()
	r := record{Strategy: m.strategy, Base: spec.Base, Owner: spec.Owner, Objects: []string{repository.ViewObjects(host, spec.Base)}, Setup: spec.Setup}
	if old, err := readRecord(m.home(spec.Change)); err == nil && r.Setup == "" && old.Base == spec.Base { // made anew, it shows what it showed
		r.Setup = old.Setup
	}
	r.on(below)
	err = m.fill(path, r, below, func(gitDir string) error {
		if err := layer.CopyIndex(below.Index, filepath.Join(gitDir, "index")); err != nil {
			return err
		}
		return m.makeAgentGit(gitDir, host, spec, spec.Base)
	})
	return func() { drop(); leave() }, err
}

// on says which layer a workspace stands on.
func (r *record) on(l layer.Layer) {
	r.Layers, r.Ignore = l.Chain()
	r.Tree = r.Layers[len(r.Layers)-1]
}

// fill makes the folders of a workspace; the record comes last.
func (m *Manager) fill(path string, r record, below layer.Layer, makeGit func(gitDir string) error) error {
	if err := whole.MakeFolder(m.ops, filepath.Dir(path)); err != nil {
		return err
	}
	if err := whole.Remove(m.ops, "workspace:clear", path); err != nil {
		return err
	}
	err := m.ops.Do("workspace:folders", func() error {
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		folders := []string{"scratch", "scratch/.git"}
		if r.Strategy == Overlay {
			folders = append(folders, "upper", "work", "cache", "cache-work")
		}
		for _, name := range folders {
			if err := layer.OwnFolder(filepath.Join(path, name), r.Owner); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = m.ops.Do("workspace:git", func() error {
		if err := makeGit(filepath.Join(path, "scratch", ".git")); err != nil {
			return err
		}
		return layer.ChownTree(filepath.Join(path, "scratch"), r.Owner)
	})
	if err != nil {
		return err
	}
	if r.Strategy != Overlay {
		trees := below.Trees
		if r.Setup != "" {
			trees = append(slices.Clone(trees), m.Stocks.Tree(r.Setup))
		}
		err := m.ops.Do("workspace:copy", func() error {
			return layer.CopyBase(trees, filepath.Join(path, "tree"), r.Owner, r.Strategy == Reflink)
		})
		if err != nil {
			return err
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return m.ops.Do("workspace:record", func() error { return whole.Write(filepath.Join(path, recordName), data) })
}

// binds shows what a base reaches. A workspace of an older sallyport was shown the project's own objects; it sees none of them any more.
func (m *Manager) binds(objects []string) []sandbox.Bind {
	var shown []sandbox.Bind
	for _, folder := range objects {
		if !strings.HasPrefix(folder, m.root+"/") {
			continue
		}
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
		}
		shown = append(shown, sandbox.Bind{Source: folder, Target: shownObjects})
	}
	return shown
}
