package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// keptBytesMax bounds the file of one checkpoint's diff.
const keptBytesMax = 4 << 30

// Keep writes what write writes to .state/changes/<change>/checkpoints/<checkpoint>.diff and
// returns its path (SV-041). At any instant the file is whole or not there: it is written aside,
// made durable and renamed. Writing it again replaces it.
func (d *Daemon) Keep(ctx context.Context, change id.Change, ref id.Checkpoint, write func(io.Writer) error) (string, error) {
	d.keeping.Lock() // one at a time, so that what a crash left half written has one name and is written over
	defer d.keeping.Unlock()
	folder := filepath.Join(d.Home, ".state", "changes", string(change), "checkpoints")
	if err := d.Ops.Do("export:folder", func() error { return os.MkdirAll(folder, 0o700) }); err != nil {
		return "", unwritable(d.Home, err)
	}
	file := filepath.Join(folder, string(ref)+".diff")
	aside := file + ".new"
	err := d.keepAside(aside, write)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = d.Ops.Do("export:commit", func() error { return os.Rename(aside, file) })
	}
	if err != nil {
		cleared := d.Ops.Do("export:clear", func() error { return os.RemoveAll(aside) })
		return "", fmt.Errorf("write the diff of %s: %w", ref, errors.Join(err, cleared))
	}
	return file, nil
}

// keepAside writes a file and waits until it is on the disk.
func (d *Daemon) keepAside(aside string, write func(io.Writer) error) error {
	return d.Ops.Do("export:write", func() error {
		out, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		buffered := bufio.NewWriterSize(&limited{out, keptBytesMax}, 1<<16)
		if err = write(buffered); err == nil {
			err = buffered.Flush()
		}
		if err == nil {
			err = out.Sync()
		}
		return errors.Join(err, out.Close())
	})
}

// limited refuses to write more than left bytes.
type limited struct {
	to   io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, problem.Errorf(problem.Refused, "sallyport checkpoint diff --help", "the diff is larger than %d bytes", int64(keptBytesMax))
	}
	l.left -= int64(len(p))
	return l.to.Write(p)
}
