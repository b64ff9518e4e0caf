package repository

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
)

// lockMax is how long a git that outlived its daemon has to move a ref, which takes milliseconds.
const lockMax = 10 * time.Second

// Unlock removes the locks that a killed git, or a power cut, has left on the refs of a change, in the host's repository
// and the project's. It is for a daemon that has just begun: a git that outlived the last one has lockMax to end.
func (r *Store) Unlock(ctx context.Context, project git.Project, change id.Change) error {
	var all []error
	for _, top := range []string{r.path(project), project.CommonDir} {
		found, err := Locks(filepath.Join(top, RefRoot(change)))
		if err != nil {
			all = append(all, err)
			continue
		}
		for _, lock := range found {
			if err := r.unlock(ctx, lock); err != nil {
				all = append(all, err)
			}
		}
	}
	return errors.Join(all...)
}

// unlock removes a lock once it is too old to be held.
func (r *Store) unlock(ctx context.Context, lock beneath.Place) error {
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
	return r.ops.Do("refs:unlock", lock.Unlink)
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

// All returns the host's own bare repositories.
func (r *Store) All() ([]git.Dir, error) {
	entries, err := os.ReadDir(r.Root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var all []git.Dir
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && filepath.Ext(name) == ".git" && name[0] != '.' {
			all = append(all, git.Dir{Path: filepath.Join(r.Root, name), Ops: r.ops})
		}
	}
	return all, err
}

// HalfMadeBases is where a crash leaves bases half made, below the folder that the repositories' folder lies in.
const HalfMadeBases = "repos/*/" + viewsFolder + "/.new-*"

// Host returns where the host's repository of a project is, made or not, and touches nothing.
func (r *Store) Host(project git.Project) git.Dir {
	return git.Dir{Path: r.path(project), Ops: r.ops}
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
