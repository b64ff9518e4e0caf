package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// lockMax is how long a git that outlived its daemon has to move a ref, which takes milliseconds.
const lockMax = 10 * time.Second

// Unlock removes the locks that a killed git, or a power cut, has left on the refs of a change, in the host's repository
// and the project's. It is for a daemon that has just begun: a git that outlived the last one has lockMax to end.
func (m *Manager) Unlock(ctx context.Context, project git.Project, change id.Change) error {
	var all []error
	for _, top := range []string{m.repository(project), project.CommonDir} {
		found, err := Locks(filepath.Join(top, RefRoot(change)))
		if err != nil {
			all = append(all, err)
			continue
		}
		for _, lock := range found {
			if err := m.unlock(ctx, lock); err != nil {
				all = append(all, err)
			}
		}
	}
	return errors.Join(all...)
}

// unlock removes a lock once it is too old to be held.
func (m *Manager) unlock(ctx context.Context, lock beneath.Place) error {
	for end := time.Now().Add(lockMax); time.Since(lock.At) < lockMax && time.Now().Before(end); {
		if now, _, err := beneath.PlaceOf(lock.Path); err != nil || now.Ino != lock.Ino {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return m.ops.Do("refs:unlock", lock.Unlink)
}

// Locks returns git's lock files below a folder of a git directory. No link is followed.
func Locks(top string) ([]beneath.Place, error) {
	return beneath.Find(top, func(name string) bool { return strings.HasSuffix(name, ".lock") })
}

// Leavings returns what a killed git has left in a repository of the host's: locks, half-written packs and objects, reports
// of its death.
func Leavings(host git.Dir) ([]beneath.Place, error) {
	return beneath.Find(host.Path, func(name string) bool {
		return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "fast_import_crash_")
	})
}

// Repositories returns the host's own bare repositories.
func (m *Manager) Repositories() ([]git.Dir, error) {
	folder := filepath.Join(m.root, "repos")
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var all []git.Dir
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && filepath.Ext(name) == ".git" && name[0] != '.' {
			all = append(all, git.Dir{Path: filepath.Join(folder, name), Ops: m.ops})
		}
	}
	return all, err
}

// Host returns where the host's repository of a project is, made or not, and touches nothing.
func (m *Manager) Host(project git.Project) git.Dir {
	return git.Dir{Path: m.repository(project), Ops: m.ops}
}

// Found opens a workspace by its record alone, and returns it with the host's repository that holds its base:
// for one whose change nobody knows.
//
// Errors: problem.NotFound if there is none, or no repository of the host's holds its base.
func (m *Manager) Found(ctx context.Context, change id.Change) (Workspace, git.Dir, error) {
	path := m.home(change)
	r, err := readRecord(path)
	if errors.Is(err, os.ErrNotExist) {
		return Workspace{}, git.Dir{}, problem.Errorf(problem.NotFound, "", "the folder %q has no record of a workspace", path)
	}
	if err != nil {
		return Workspace{}, git.Dir{}, err
	}
	for _, objects := range r.Objects {
		spec := Spec{Change: change, Base: r.Base, Owner: r.Owner}
		above, _, _ := strings.Cut(objects, "/"+viewsFolder+"/")
		host := git.Dir{Path: above, Ops: m.ops}
		if !strings.HasPrefix(host.Path, m.root+"/") || !whole.Exists(host.Path) {
			continue
		}
		if ok, err := holds(ctx, host, r.Base); err != nil || !ok {
			continue
		}
		w := m.workspace(spec, path, r)
		w.host = host // no record names the project
		return w, host, nil
	}
	return Workspace{}, git.Dir{}, problem.Errorf(problem.NotFound, "", "no repository holds %.12s, the base of the workspace %q", r.Base, path)
}

// Bases returns the trees that workspaces stand on: their layers are in use.
func (m *Manager) Bases() (map[git.OID]bool, error) {
	there, err := m.Changes()
	if err != nil {
		return nil, err
	}
	used := map[git.OID]bool{}
	for _, change := range there {
		r, err := readRecord(m.home(change))
		if err != nil {
			return nil, fmt.Errorf("read what %s stands on: %w", change, err)
		}
		used[r.Tree] = true
	}
	return used, nil
}

// HasRepository reports whether a git directory is there; one that is gone has no refs.
func HasRepository(dir git.Dir) (bool, error) {
	_, err := os.Stat(filepath.Join(dir.Path, "HEAD"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// DropRefs removes refs of ours as they are: one that has moved meanwhile stays and is an error.
func DropRefs(ctx context.Context, dir git.Dir, refs map[string]git.OID) error {
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		if !strings.HasPrefix(ref, "refs/sallyport/") {
			return fmt.Errorf("%q is no ref of sallyport's", ref)
		}
		if err := dir.UpdateRef(ctx, "release:ref", ref, "", refs[ref]); err != nil {
			return err
		}
	}
	return nil
}
