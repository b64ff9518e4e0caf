package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/stamp"
)

// EditPolicy is the command by which a person opens a home's policy.yaml.
func EditPolicy(home string) string { return edit(filepath.Join(home, PolicyFile)) }

// read returns a regular file's bytes, nil if there is none, and its stamp, if that tells it apart; one byte beyond the limit is enough to refuse it.
func read(name string) ([]byte, stamp.Stamp, error) {
	return readIf(name, func(fs.FileInfo) error { return nil })
}

// readOwners is read of a file that nobody may change but root and whose folder it is.
func readOwners(name string) ([]byte, stamp.Stamp, error) {
	return readIf(name, func(file fs.FileInfo) error {
		home, err := os.Stat(filepath.Dir(name))
		if err != nil {
			return err
		}
		is, ok := file.Sys().(*syscall.Stat_t)
		whose, known := home.Sys().(*syscall.Stat_t)
		switch {
		case !ok || !known || is.Uid != 0 && is.Uid != whose.Uid:
			return problem.Errorf(problem.Refused, "ls -ln "+inert.Path(filepath.Dir(name)),
				"%q belongs to another user than its folder: who wrote it would say what your agents may do", name)
		}
		return OnlyOwner(name, file)
	})
}

// readIf is read of a file that may be read.
func readIf(name string, may func(fs.FileInfo) error) ([]byte, stamp.Stamp, error) {
	unreadable := func(err error) ([]byte, stamp.Stamp, error) {
		return nil, stamp.Stamp{}, problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(filepath.Dir(name)), "read the configuration: %w", err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, stamp.Stamp{}, nil
	}
	if err != nil {
		return unreadable(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	begun := stamp.Now()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return unreadable(err)
	}
	if err := may(info); err != nil {
		return nil, stamp.Stamp{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, FileBytesMax+1))
	if err != nil {
		return unreadable(err)
	}
	return data, stamp.From(info).Since(begun), nil
}
