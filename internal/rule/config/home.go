package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/stamp"
)

// EditPolicy is the command by which a person opens a home's policy.yaml.
func EditPolicy(home string) string { return edit(filepath.Join(home, PolicyFile)) }

// read returns a regular file's bytes, nil if there is none, and its stamp, if that tells it apart; one byte beyond the limit is enough to refuse it.
func read(name string) ([]byte, stamp.Stamp, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, FileBytesMax+1))
	if err != nil {
		return unreadable(err)
	}
	return data, stamp.From(info).Since(begun), nil
}
