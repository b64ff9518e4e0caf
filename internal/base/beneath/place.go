package beneath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
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

// PlaceOf returns what is at a path without following a link in its place; false if it is no folder.
// Absence is the zero Place.
func PlaceOf(path string) (Place, bool, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return Place{}, false, nil
	}
	if err != nil {
		return Place{}, false, &os.PathError{Op: "look at", Path: path, Err: err}
	}
	return placeAs(path, st), st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

func placeAs(path string, st unix.Stat_t) Place {
	return Place{Path: path, Dev: st.Dev, Ino: st.Ino, UID: st.Uid, Mode: st.Mode, At: time.Unix(max(st.Mtim.Sec, st.Ctim.Sec), 0)}
}

// Remove takes a folder away with all that is in it, if it still is the one that was looked at. It
// follows no link, not on the way either, and enters no mount. One that is gone is success; another in its place
// stays and is an error. A crash leaves none of it under its name.
func (p Place) Remove() error {
	parent, err := Real(filepath.Dir(p.Path), unix.O_RDONLY|unix.O_DIRECTORY)
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
	if err := Remove(parent, aside); err != nil {
		return &os.PathError{Op: "remove", Path: p.Path, Err: err}
	}
	return nil
}

// Unlink removes a file, or a link, or an empty folder, if it is what was looked at. It looks again just before, and what
// comes in its place in that instant is not told apart: it is for what only its owner can replace.
func (p Place) Unlink() error {
	parent, err := Real(filepath.Dir(p.Path), unix.O_RDONLY|unix.O_DIRECTORY)
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

// foundMax is how many files are found at once: who may write there could else have any number kept in memory, each with its path.
const foundMax = 2000

var errEnough = errors.New("that is enough")

// Find returns the files below a folder whose name is such a one, and whose path is one that can be opened; of more than 2,000 it returns the
// first. No link is followed, no mount entered.
func Find(top string, is func(name string) bool) ([]Place, error) {
	fd, err := Real(top, unix.O_RDONLY|unix.O_DIRECTORY)
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
		return Names(fd, func(name string) error {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				return nil // gone again
			}
			at := filepath.Join(path, name)
			switch st.Mode & unix.S_IFMT {
			case unix.S_IFREG:
				if !is(name) || len(at) > PathMax {
					return nil
				}
				if found = append(found, placeAs(at, st)); len(found) == foundMax {
					return errEnough
				}
			case unix.S_IFDIR:
				inner, err := Open(fd, name, unix.O_RDONLY|unix.O_DIRECTORY)
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
	if err := look(fd, top, 0); !errors.Is(err, errEnough) {
		return found, err
	}
	return found, nil
}

// Special names the kind of what is no file, link or folder, by its mode.
func Special(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "fifo"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFCHR:
		return "character device"
	case unix.S_IFBLK:
		return "block device"
	}
	return "file of an unknown kind"
}

// PathMax is the length of the longest path, in bytes, that is opened below a workspace.
const PathMax = unix.PathMax - 1
