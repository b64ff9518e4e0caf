package workspace

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/problem"
)

// Usage is what a workspace takes and what is left where it lies.
type Usage struct {
	Held int64 // bytes of disk: files, folders, left-over files and the agent's own git; of a copy, what is beyond the base by size
	Free int64 // bytes that the file system still gives
	All  int64 // bytes of the file system
}

// Low reports whether so little is left on the file system that everybody's work is in danger: less than one
// part in fifty, or than a gigabyte where that is less.
func (u Usage) Low() bool { return u.Free < min(u.All/50, 1<<30) }

// Usage measures a workspace; found is a walk of it. What an agent has unlinked and keeps open is in Free alone.
func (m *Manager) Usage(ctx context.Context, w Workspace, found Diff) (Usage, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(w.path, &fs); err != nil {
		return Usage{}, fmt.Errorf("measure the disk of %s: %w", w.Spec.Change, err)
	}
	u := Usage{Free: int64(fs.Bavail) * fs.Bsize, All: int64(fs.Blocks) * fs.Bsize}
	home, err := beneath.Top(w.path, unix.O_RDONLY)
	if err != nil {
		return Usage{}, err
	}
	defer unix.Close(home)
	measure := func(name string) int64 {
		sum := &blocks{ctx: ctx, limits: m.limits}
		if failed := sum.folder(home, name, 0); failed != nil && err == nil {
			err = fmt.Errorf("measure the workspace of %s: %w", w.Spec.Change, failed)
		}
		return sum.bytes
	}
	u.Held = found.Bytes
	if w.Strategy == Overlay {
		u.Held = max(u.Held, measure("upper"))
	}
	u.Held += measure("scratch") + measure("cache")
	if err != nil {
		return Usage{}, err
	}
	return u, nil
}

// blocks adds up what the file system has given to entries.
type blocks struct {
	ctx    context.Context
	limits Limits
	seen   int
	bytes  int64
	linked map[[2]uint64]bool // files with several names, which count once
}

// once reports whether an entry is to be counted: a file with several names is, under the first.
func (b *blocks) once(st unix.Stat_t) bool {
	if st.Nlink < 2 || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return true
	}
	key := [2]uint64{st.Dev, st.Ino}
	if b.linked == nil {
		b.linked = map[[2]uint64]bool{}
	}
	seen := b.linked[key]
	b.linked[key] = true
	return !seen
}

// folder adds one folder and all below; what cannot be opened, or is gone again, counts by itself alone.
func (b *blocks) folder(dir int, name string, depth int) error {
	fd, err := beneath.Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil || depth > b.limits.Depth {
		if err == nil {
			unix.Close(fd)
		}
		return nil
	}
	defer unix.Close(fd)
	err = beneath.Names(fd, func(name string) error {
		if b.seen++; b.seen > b.limits.Entries {
			return problem.Errorf(problem.Refused, "sallyport doctor", "the workspace has more than %d entries (limit entries)", b.limits.Entries)
		}
		if b.seen%4096 == 0 && b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if errors.Is(err, unix.ENOENT) {
				return nil
			}
			return err
		}
		if b.once(st) {
			b.bytes += st.Blocks * 512
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return b.folder(fd, name, depth+1)
		}
		return nil
	})
	if errors.Is(err, unix.ENOENT) { // it was removed while it was read
		return nil
	}
	return err
}
