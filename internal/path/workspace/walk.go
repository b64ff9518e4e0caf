package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/layer"
	"sallyport/internal/rule/policy"
)

// Walk returns every path that differs from the base, and counts what is left over.
// An entry of a folder that cannot be read is returned as Unreadable, never skipped.
//
// What runs in the workspace should be frozen: nothing unsafe happens otherwise, but
// then the answer is of no single moment.
//
// Errors: problem.Refused naming a limit.
func (m *Manager) Walk(ctx context.Context, w Workspace) (Diff, error) {
	w = m.reads(w)
	seen, err := w.survey(ctx)
	if err != nil {
		return Diff{}, err
	}
	return w.split(ctx, seen.found)
}

// surveyed is what one walk saw.
type surveyed struct {
	found []finding // left over or not, in path order
	odd   []string  // folders whose mode is not 0755
}

// survey walks the writable side.
func (w Workspace) survey(ctx context.Context) (surveyed, error) {
	walk := walker{ctx: ctx, limits: w.limits, closed: func(do func() error) error { return w.ops.Do("walk:unlock", do) }}
	base, err := layer.OpenBase(w.layers)
	if err != nil {
		return surveyed{}, err
	}
	defer base.Close()
	walk.entry = walk.copyEntry
	if w.Strategy == Overlay {
		walk.entry = walk.upperEntry
	}
	fd, restore, err := w.OpenSide()
	if err != nil {
		return surveyed{}, err
	}
	defer restore()
	defer unix.Close(fd)
	err = walk.folder(fd, base, place{})
	if err == nil && w.Strategy != Overlay {
		err = walk.missing(fd, base, place{})
	}
	if err != nil {
		return surveyed{}, fmt.Errorf("walk the workspace of %s: %w", w.Spec.Change, err)
	}
	slices.SortFunc(walk.found, func(a, b finding) int { return strings.Compare(a.Path, b.Path) })
	return surveyed{walk.found, walk.odd}, nil
}

// OpenSide opens the folder that the agent's files are in, even if the agent closed it.
func (w Workspace) OpenSide() (fd int, restore func(), err error) {
	home, err := beneath.Top(w.path, unix.O_RDONLY)
	if err != nil {
		return -1, nil, err
	}
	defer unix.Close(home)
	name := "tree"
	if w.Strategy == Overlay {
		name = "upper"
	}
	fd, restore, err = beneath.Folder(home, name)
	if err != nil {
		return -1, nil, fmt.Errorf("open the %s folder of %s: %w", name, w.Spec.Change, err)
	}
	return fd, restore, nil
}

// place is where a walk stands.
type place struct {
	path   string // "" = top
	depth  int
	hidden bool // upper folder: nothing of the base shows through
	marked bool // upper folder: empty files may stand for deletions
}

func (p place) join(name string) string {
	if p.path == "" {
		return name
	}
	return p.path + "/" + name
}

// finding is a found path and whether the base has nothing at it.
type finding struct {
	Found
	fresh bool
}

// walker is one walk. In its methods dir is a folder of the writable side, and below the
// base's folder of the same path, or nil if it has none.
type walker struct {
	ctx    context.Context
	limits Limits
	closed func(do func() error) error // wraps the opening of a folder that its owner closed
	seen   int
	bytes  int64 // of all paths seen, and of what links lead to
	found  []finding
	odd    []string
	entry  func(dir int, below *layer.Base, at place, name string, st *unix.Stat_t) error
}

// folder walks one open folder.
func (w *walker) folder(dir int, below *layer.Base, at place) error {
	return beneath.Names(dir, func(name string) error {
		if w.seen++; w.seen > w.limits.Entries {
			return problem.Errorf(problem.Refused, "sallyport doctor",
				"the workspace has more than %d entries (limit entries), counted up to %q", w.limits.Entries, at.join(name))
		}
		if w.bytes += int64(len(at.path) + 1 + len(name)); w.bytes > w.limits.PathBytes {
			return problem.Errorf(problem.Refused, "sallyport doctor",
				"the paths and links of the workspace have more than %d bytes together (limit path bytes), counted up to %.100q",
				w.limits.PathBytes, at.join(name))
		}
		if w.seen%4096 == 0 && w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		var st unix.Stat_t
		err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			return nil // gone since it was listed
		}
		if err != nil {
			w.unreadable(below, at, name, err.Error())
			return nil
		}
		if at.path == "" && name == ".git" && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil // the mount of the agent's own git
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o7777 != 0o755 {
			w.odd = append(w.odd, at.join(name))
		}
		return w.entry(dir, below, at, name, &st)
	})
}

// enter opens a folder of the writable side and calls do with it. One that cannot be
// opened, or lies too deep, is a finding.
func (w *walker) enter(dir int, below *layer.Base, at place, name string, do func(fd int, at place) error) error {
	inner := place{path: at.join(name), depth: at.depth + 1}
	if inner.depth > w.limits.Depth {
		w.unreadable(below, at, name, fmt.Sprintf("folders nested more than %d deep", w.limits.Depth))
		return nil
	}
	if len(inner.path) > beneath.PathMax {
		w.unreadable(below, at, name, fmt.Sprintf("a path of more than %d bytes", beneath.PathMax))
		return nil
	}
	fd, err := beneath.Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil && unix.Faccessat(fd, ".", unix.X_OK, 0) == nil {
		defer unix.Close(fd)
		return do(fd, inner)
	}
	if err == nil {
		unix.Close(fd)
	} else if errors.Is(err, unix.ENOENT) {
		return nil
	} else if !errors.Is(err, unix.EACCES) {
		w.unreadable(below, at, name, err.Error())
		return nil
	}
	return w.closed(func() error {
		fd, restore, err := beneath.Folder(dir, name)
		if err != nil {
			w.unreadable(below, at, name, err.Error())
			return nil
		}
		defer restore()
		defer unix.Close(fd)
		return do(fd, inner)
	})
}

func (w *walker) unreadable(below *layer.Base, at place, name, why string) {
	w.add(below, name, Found{Path: at.join(name), Fact: policy.Fact{Unreadable: why}})
}

func (w *walker) add(below *layer.Base, name string, f Found) {
	var st unix.Stat_t
	w.found = append(w.found, finding{f, below.Stat(name, &st) != nil})
}

// put records what is at a path of the writable side and is no folder.
func (w *walker) put(dir int, below *layer.Base, at place, name string, st *unix.Stat_t) {
	f := Found{Path: at.join(name), Fact: policy.Fact{HardLinks: int(st.Nlink)}, At: st.Ctim.Nano()}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		f.Mode = git.File
		if st.Mode&0o100 != 0 {
			f.Mode = git.Executable
		}
		f.Fact.Size = st.Size
		f.Fact.SetID = st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0
	case unix.S_IFLNK:
		f.Mode = git.Symlink
		target, err := beneath.Link(dir, name)
		if err != nil {
			f.Mode, f.Fact.Unreadable = "", err.Error()
		}
		f.Fact.LinkTarget = target
		w.bytes += int64(len(target))
	default:
		f.Fact.Special = beneath.Special(st.Mode)
	}
	if len(f.Path) > beneath.PathMax {
		f.Mode, f.Fact.Unreadable = "", fmt.Sprintf("a path of more than %d bytes", beneath.PathMax)
	}
	w.add(below, name, f)
}

// gone records that a path of the base, or all that lies below it, is not there any more.
func (w *walker) gone(below *layer.Base, at place, name string) error {
	var st unix.Stat_t
	if err := below.Stat(name, &st); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		w.found = append(w.found, finding{Found: Found{Path: at.join(name)}})
		return nil
	}
	return w.allGone(below, at, name)
}

// allGone records that all the base has in the folder at a name is not there any more.
func (w *walker) allGone(below *layer.Base, at place, name string) error {
	folder, err := below.Folder(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	inner := place{path: at.join(name)}
	return folder.Names(func(name string) error { return w.gone(folder, inner, name) })
}
