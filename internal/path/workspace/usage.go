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
		bytes, failed := beneath.AllocatedIn(ctx, home, name, m.limits.Entries, m.limits.Depth)
		if errors.Is(failed, beneath.ErrTooMany) {
			failed = problem.Errorf(problem.Refused, "sallyport doctor", "the workspace has more than %d entries (limit entries)", m.limits.Entries)
		}
		if failed != nil && err == nil {
			err = fmt.Errorf("measure the workspace of %s: %w", w.Spec.Change, failed)
		}
		return bytes
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
