// Package whole makes files and folders that are there whole or not at all: something is made under a name of its own, brought
// to disk, and renamed into place.
package whole

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
)

// Fresh is the name under which something is made before it is renamed into place. What a crash leaves of it is half made.
func Fresh(path string) string {
	return filepath.Join(filepath.Dir(path), ".new-"+filepath.Base(path))
}

// Exists reports whether anything is at a path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// MakeFolder makes a folder of the host's own with its parents, closed to others.
func MakeFolder(ops disk.Ops, path string) error {
	if st, err := os.Lstat(path); err == nil && st.IsDir() {
		return nil
	}
	return ops.Do("folder:make", func() error { return os.MkdirAll(path, 0o700) })
}

// Remove takes away a tree that may hold anything an agent can make; absence is success.
func Remove(ops disk.Ops, op, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return ops.Do(op, func() error { return beneath.RemoveAll(path) })
}

// SetFile makes a file hold exactly data, atomically; empty data removes it.
func SetFile(ops disk.Ops, op, path string, data []byte) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if bytes.Equal(old, data) {
		return nil
	}
	return ops.Do(op, func() error {
		if len(data) == 0 {
			return os.Remove(path)
		}
		temp := Fresh(path)
		if err := Write(temp, data); err != nil {
			return err
		}
		return os.Rename(temp, path)
	})
}

// Commit brings a made folder to disk and into place.
func Commit(temp, path string) error {
	fd, err := beneath.Top(temp, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Syncfs(fd); err != nil {
		return &os.PathError{Op: "sync", Path: temp, Err: err}
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return Sync(filepath.Dir(path))
}

// Sync brings a folder's names to disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Write writes a whole file and brings it to disk.
func Write(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// WriteAlone writes a whole file that only its owner reads, and brings it to disk. Whatever was there before is gone.
func WriteAlone(path string, data []byte) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Keep makes a file that only its owner reads hold exactly data, on the disk: after a crash it is the old one or the new one. Its
// operations are noun:write and noun:commit.
func Keep(ops disk.Ops, noun, path string, data []byte) error {
	temp := Fresh(path)
	if err := ops.Do(noun+":write", func() error { return WriteAlone(temp, data) }); err != nil {
		return err
	}
	return ops.Do(noun+":commit", func() error {
		if err := os.Rename(temp, path); err != nil {
			return err
		}
		return Sync(filepath.Dir(path))
	})
}

// Retire takes away what is at a path in such a way that a crash leaves no half of it under its name: it goes aside by one rename,
// and is removed there. Its operations are noun:clear, noun:retire and noun:remove; absence is success.
func Retire(ops disk.Ops, noun, path string) error {
	aside := Fresh(path)
	if err := Remove(ops, noun+":clear", aside); err != nil || !Exists(path) {
		return err
	}
	if err := ops.Do(noun+":retire", func() error { return os.Rename(path, aside) }); err != nil {
		return err
	}
	return Remove(ops, noun+":remove", aside)
}

// EmptyFolder makes a folder of the host's own, empty, whatever is there.
func EmptyFolder(ops disk.Ops, clear, path string) error {
	if err := Remove(ops, clear, path); err != nil {
		return err
	}
	return MakeFolder(ops, path)
}

// NoteUse notes by a path's time of change that it is of use now, to the minute.
func NoteUse(ops disk.Ops, op, path string) error {
	st, err := os.Lstat(path)
	if err != nil || time.Since(st.ModTime()).Abs() < time.Minute {
		return err
	}
	return ops.Do(op, func() error { return os.Chtimes(path, time.Time{}, time.Now()) })
}
