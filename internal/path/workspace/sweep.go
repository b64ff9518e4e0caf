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
)

// Place is a file or folder as it was looked at: what is removed later is exactly that one.
type Place struct {
	Path string
	Dev  uint64
	Ino  uint64
	UID  uint32
	Mode uint32    // type and rights, as stat has them
	At   time.Time // when it was last changed in any way, in whole seconds; of a folder: itself, not what is below
}

// Look returns what is at a path without following a link in its place; false if it is no folder.
// Absence is the zero Place.
func Look(path string) (Place, bool, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, &os.PathError{Op: "look at", Path: path, Err: err}
	}
	return placeOf(path, st), st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

func placeOf(path string, st unix.Stat_t) Place {
	return Place{Path: path, Dev: st.Dev, Ino: st.Ino, UID: st.Uid, Mode: st.Mode, At: time.Unix(max(st.Mtim.Sec, st.Ctim.Sec), 0)}
}

// Remove takes a folder away with all that is in it, if it still is the one that was looked at. It
// follows no link, not on the way either, and enters no mount. One that is gone is success; another in its place
// stays and is an error. A crash leaves none of it under its name.
func (p Place) Remove() error {
	parent, err := beneath.Real(filepath.Dir(p.Path), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	name := filepath.Base(p.Path)
	aside := ".new-" + name // what a crash leaves of it is half made to every sweep
	err = unix.Renameat2(parent, name, parent, aside, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: p.Path, Err: err}
	}
	if !p.is(parent, aside) {
		back := unix.Renameat2(parent, aside, parent, name, unix.RENAME_NOREPLACE)
		return errors.Join(fmt.Errorf("remove %q: something else has come in its place", p.Path), back)
	}
	if err := removeAt(parent, aside); err != nil {
		return &os.PathError{Op: "remove", Path: p.Path, Err: err}
	}
	return nil
}

// Unlink removes a file, or a link, or an empty folder, if it is what was looked at. It looks again just before, and what
// comes in its place in that instant is not told apart: it is for what only its owner can replace.
func (p Place) Unlink() error {
	parent, err := beneath.Real(filepath.Dir(p.Path), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	name := filepath.Base(p.Path)
	if !p.is(parent, name) {
		return nil // it is gone, and what is there now is not what was meant
	}
	err = unix.Unlinkat(parent, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: p.Path, Err: err}
	}
	return nil
}

// is reports whether name in an open folder is what was looked at.
func (p Place) is(dir int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Dev == p.Dev && st.Ino == p.Ino
}

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
func (m *Manager) unlock(ctx context.Context, lock Place) error {
	for end := time.Now().Add(lockMax); time.Since(lock.At) < lockMax && time.Now().Before(end); {
		if now, _, err := Look(lock.Path); err != nil || now.Ino != lock.Ino {
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
func Locks(top string) ([]Place, error) {
	return leftByGit(top, func(name string) bool { return strings.HasSuffix(name, ".lock") })
}

// Leavings returns what a killed git has left in a repository of the host's: locks, half-written packs and objects, reports
// of its death.
func Leavings(host git.Dir) ([]Place, error) {
	return leftByGit(host.Path, func(name string) bool {
		return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.HasPrefix(name, "fast_import_crash_")
	})
}

// leftByGit returns the files below a folder whose name is one that git gives away when it ends. No link is followed.
func leftByGit(top string, is func(name string) bool) ([]Place, error) {
	fd, err := beneath.Real(top, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var found []Place
	var look func(fd int, path string, depth int) error
	look = func(fd int, path string, depth int) error {
		return beneath.Names(fd, func(name string) error {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				return nil // gone again
			}
			at := filepath.Join(path, name)
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFREG:
				if is(name) {
					found = append(found, placeOf(at, st))
				}
			case unix.S_IFDIR:
				inner, err := beneath.Open(fd, name, unix.O_RDONLY|unix.O_DIRECTORY)
				if err != nil || depth == openMax {
					if err == nil {
						unix.Close(inner)
					}
					return nil
				}
				defer unix.Close(inner)
				return look(inner, at, depth+1)
			}
			return nil
		})
	}
	return found, look(fd, top, 0)
}

// Allocated returns what the file system has given to a folder and all below it, in bytes. What cannot be
// opened counts by itself alone; no link is followed, no mount entered.
func Allocated(ctx context.Context, path string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return 0, nil
		}
		return 0, &os.PathError{Op: "measure", Path: path, Err: err}
	}
	sum := &blocks{ctx: ctx, limits: Limits{Entries: 1 << 40, Depth: 512}, bytes: st.Blocks * 512}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return sum.bytes, nil
	}
	parent, err := beneath.Top(filepath.Dir(path), unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	if err := sum.folder(parent, filepath.Base(path), 0); err != nil {
		return 0, fmt.Errorf("measure %q: %w", path, err)
	}
	return sum.bytes, nil
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
		if !strings.HasPrefix(host.Path, m.root+"/") || !exists(host.Path) {
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
