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
)

// EditPolicy is the command by which a person opens a home's policy.yaml.
func EditPolicy(home string) string { return edit(filepath.Join(home, PolicyFile)) }

// stamp tells one state of a file from another without reading it.
type stamp struct {
	dev, ino uint64
	size     int64
	modified syscall.Timespec
	changed  syscall.Timespec // the kernel's, which nobody sets
}

func stampOf(info os.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
}

// read returns a regular file's bytes, nil if there is none; one byte beyond the limit is enough to refuse it.
func read(name string) ([]byte, stamp, error) {
	unreadable := func(err error) ([]byte, stamp, error) {
		return nil, stamp{}, problem.Errorf(problem.Unavailable, "ls -l "+inert.Path(filepath.Dir(name)), "read the configuration: %w", err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, stamp{}, nil
	}
	if err != nil {
		return unreadable(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
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
	return data, stampOf(info), nil
}
