package beneath

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveAll takes away a tree that may hold anything an agent can make: folders
// without rights, links, endless depth. It follows no link and enters no mount.
func RemoveAll(path string) error {
	parent, err := Top(filepath.Dir(path), unix.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	if err := Remove(parent, filepath.Base(path)); err != nil {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

func Remove(dir int, name string) error {
	done, err := unlink(dir, name)
	if done || err != nil {
		return err
	}
	top, err := openEmptying(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	r := remover{top: top}
	for rounds := 0; ; rounds++ {
		if err := r.empty(top, 0); err != nil {
			return err
		}
		err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if !errors.Is(err, unix.ENOTEMPTY) || rounds == roundsMax {
			return err
		}
	}
}

// roundsMax bounds how often a folder is emptied that is never empty.
const roundsMax = 1 << 20

// remover empties a folder; what lies deeper than openMax is moved up to the top
// first, so that depth costs neither stack nor descriptors.
type remover struct {
	top int
}

// openMax is how many folders in each other are open at once.
const openMax = 128

func (r *remover) empty(fd, depth int) error {
	return Names(fd, func(name string) error {
		done, err := unlink(fd, name)
		if done || err != nil {
			return err
		}
		child, err := openEmptying(fd, name)
		if err != nil {
			return err
		}
		if depth == openMax { // under a name that nobody can have taken; the right to write, which moving a folder needs, is there by now
			unix.Close(child)
			return unix.Renameat(fd, name, r.top, ".deep-"+rand.Text())
		}
		err = r.empty(child, depth+1)
		unix.Close(child)
		if err != nil {
			return err
		}
		if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		return nil // listed incompletely while it shrank: the next round takes the rest
	})
}

// unlink removes what is no folder, or an empty one; false if it is a folder with something in it.
func unlink(dir int, name string) (bool, error) {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return false, err
	}
	err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return false, nil
	}
	return false, err
}

// openEmptying opens a folder and takes every right on it.
func openEmptying(dir int, name string) (int, error) {
	fd, err := Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.EACCES) {
		restore, unlocked := unlock(dir, name, 0o700)
		if unlocked != nil {
			return -1, unlocked
		}
		fd, err = Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
		restore()
	}
	if err != nil {
		return -1, err
	}
	_ = unix.Fchmod(fd, 0o700) // if it is not ours to change, what follows says so
	return fd, nil
}
