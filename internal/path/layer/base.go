package layer

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// Base is one folder of a base as its layers show it together, only read. A nil Base is
// a folder that the base does not have: nothing is in it. Only layers of ours are read this way: what hides
// is a whiteout, or anything that is no folder.
type Base struct {
	fds []int // highest first
}

// OpenBase opens the top of a base, whose layers' folders are given lowest first. Close it.
func OpenBase(folders []string) (*Base, error) {
	b := &Base{}
	for i := len(folders) - 1; i >= 0; i-- {
		fd, err := beneath.Top(folders[i], unix.O_RDONLY)
		if err != nil {
			b.Close()
			return nil, err
		}
		b.fds = append(b.fds, fd)
	}
	return b, nil
}

// Close ends it; folders opened from it stay open.
func (b *Base) Close() {
	if b == nil {
		return
	}
	for _, fd := range b.fds {
		unix.Close(fd)
	}
	b.fds = nil
}

// Stat tells what the base has at a name, itself not followed; unix.ENOENT if nothing.
func (b *Base) Stat(name string, st *unix.Stat_t) error {
	_, err := b.Find(name, st)
	return err
}

// Find is Stat, and returns the folder of the layer that has it.
func (b *Base) Find(name string, st *unix.Stat_t) (dir int, err error) {
	if b == nil {
		return -1, unix.ENOENT
	}
	for _, fd := range b.fds {
		err := unix.Fstatat(fd, name, st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && IsWhiteout(st) {
			return -1, unix.ENOENT
		}
		if !errors.Is(err, unix.ENOENT) {
			return fd, err
		}
	}
	return -1, unix.ENOENT
}

// IsWhiteout reports whether an entry of a layer stands for a deletion; no tree of git holds a device.
func IsWhiteout(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }

// At opens the folder at a path, "" being b itself; nil if the base has none there. Close it.
func (b *Base) At(path string) (*Base, error) {
	at, err := b.Folder(".")
	if path == "" || err != nil {
		return at, err
	}
	for name := range strings.SplitSeq(path, "/") {
		next, err := at.Folder(name)
		at.Close()
		if next == nil || err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// Folder opens the folder at a name; nil if the base has none there. Close it.
func (b *Base) Folder(name string) (*Base, error) {
	if b == nil {
		return nil, nil
	}
	found := &Base{}
	for _, fd := range b.fds {
		inner, err := beneath.Open(fd, name, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			break // no folder: it hides what lies lower
		}
		if err != nil {
			found.Close()
			return nil, fmt.Errorf("open %q of the base: %w", name, err)
		}
		found.fds = append(found.fds, inner)
	}
	if len(found.fds) == 0 {
		return nil, nil
	}
	return found, nil
}

// Names calls each for what the base has in the folder, in no order.
func (b *Base) Names(each func(name string) error) error {
	if b == nil {
		return nil
	}
	if len(b.fds) == 1 {
		return beneath.Names(b.fds[0], each)
	}
	seen := map[string]bool{}
	for _, fd := range b.fds {
		err := beneath.Names(fd, func(name string) error {
			if seen[name] {
				return nil
			}
			seen[name] = true
			var st unix.Stat_t
			if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || IsWhiteout(&st) {
				return err
			}
			return each(name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
