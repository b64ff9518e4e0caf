package workspace

import (
	"io"

	"sallyport/internal/base/beneath"

	"golang.org/x/sys/unix"
)

// Reader opens what a walk found. It stays below the workspace's writable side whatever
// is done to it meanwhile.
type Reader struct {
	top     int
	restore func()
}

// Reader returns a reader of w; close it.
func (m *Manager) Reader(w Workspace) (*Reader, error) {
	fd, restore, err := w.OpenSide()
	if err != nil {
		return nil, err
	}
	return &Reader{top: fd, restore: restore}, nil
}

// Open opens a found regular file and returns its bytes and their number, which is exact
// as long as nobody writes. It never waits, and fails if anything but a regular file is there.
func (r *Reader) Open(path string) (io.ReadCloser, int64, error) {
	f, size, err := beneath.File(r.top, path)
	if err != nil {
		return nil, 0, err
	}
	return f, size, nil
}

// Close ends the reader; files opened through it stay open.
func (r *Reader) Close() error {
	r.restore()
	return unix.Close(r.top)
}
