package beneath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrTooMany says that a folder holds more entries than are counted.
var ErrTooMany = errors.New("too many entries")

// Allocated returns what the file system has given to a folder and all below it, in bytes. A folder that its owner closed is looked into
// if that is who looks; what else cannot be opened counts by itself alone. No link is followed, no mount entered.
func Allocated(ctx context.Context, path string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return 0, nil
		}
		return 0, &os.PathError{Op: "measure", Path: path, Err: err}
	}
	sum := &blocks{ctx: ctx, depth: 512, bytes: st.Blocks * 512}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return sum.bytes, nil
	}
	parent, err := Top(filepath.Dir(path), unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	if err := sum.folder(parent, filepath.Base(path), 0); err != nil {
		return 0, fmt.Errorf("measure %q: %w", path, err)
	}
	return sum.bytes, nil
}

// AllocatedBelow is Allocated for all below a folder of the host's own, without that folder itself, however deep.
func AllocatedBelow(ctx context.Context, path string) (int64, error) {
	parent, err := Top(filepath.Dir(path), unix.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	return AllocatedIn(ctx, parent, filepath.Base(path), 0, 1<<20)
}

// Extent is what lies below a folder.
type Extent struct {
	Bytes   int64 // that the file system has given
	Entries int
	Deep    bool // there are folders that lie deeper in each other than was looked
}

// ExtentOf measures all below a folder of the host's own, without that folder itself; folders in each other no deeper than depth.
// A folder that is not there holds nothing.
func ExtentOf(ctx context.Context, path string, depth int) (Extent, error) {
	parent, err := Top(filepath.Dir(path), unix.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return Extent{}, nil
	}
	if err != nil {
		return Extent{}, err
	}
	defer unix.Close(parent)
	sum := &blocks{ctx: ctx, depth: depth}
	err = sum.folder(parent, filepath.Base(path), 0)
	return Extent{sum.bytes, sum.seen, sum.deep}, err
}

// AllocatedIn is Allocated for all below the folder name in an open one, without that folder itself; it counts at most so many
// entries, 0 being any number, and folders in each other no deeper than depth.
//
// Errors: ErrTooMany.
func AllocatedIn(ctx context.Context, dir int, name string, entries, depth int) (int64, error) {
	sum := &blocks{ctx: ctx, entries: entries, depth: depth}
	err := sum.folder(dir, name, 0)
	return sum.bytes, err
}

// blocks adds up what the file system has given to entries.
type blocks struct {
	ctx     context.Context
	entries int // at most; 0 = any number
	depth   int // of folders in each other, at most
	seen    int
	bytes   int64
	deep    bool               // there are folders below depth
	linked  map[[2]uint64]bool // files with several names, which count once
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
	fd, restore, err := Folder(dir, name)
	if err != nil {
		return nil
	}
	defer restore()
	defer unix.Close(fd)
	if depth > b.depth {
		b.deep = true
		return nil
	}
	err = Names(fd, func(name string) error {
		if b.seen++; b.entries > 0 && b.seen > b.entries {
			return ErrTooMany
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
