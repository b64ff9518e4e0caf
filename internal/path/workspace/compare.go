package workspace

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/path/layer"
)

// copyEntry compares one entry of a plain copy with the base, byte by byte: times can be
// set by anybody, and a clock may go back.
func (w *walker) copyEntry(dir int, below *layer.Base, at place, name string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return w.copyFolder(dir, below, at, name)
	}
	var was unix.Stat_t
	from, err := below.Find(name, &was)
	if err == nil && w.equal(dir, from, name, st, &was) {
		return nil
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := w.replaced(below, at, name); err != nil {
		return err
	}
	w.put(dir, below, at, name, st)
	return nil
}

func (w *walker) copyFolder(dir int, below *layer.Base, at place, name string) error {
	under, err := below.Folder(name)
	if err != nil {
		return err
	}
	defer under.Close()
	if under == nil {
		if err := w.gone(below, at, name); err != nil {
			return err
		}
	}
	return w.enter(dir, below, at, name, func(fd int, inner place) error {
		if err := w.folder(fd, under, inner); err != nil {
			return err
		}
		return w.missing(fd, under, inner)
	})
}

// missing records what the base has in a folder and the copy has not.
func (w *walker) missing(dir int, below *layer.Base, at place) error {
	return below.Names(func(name string) error {
		if at.path == "" && name == ".git" {
			return nil
		}
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
			return nil // there, or found unreadable by the walk itself
		}
		return w.gone(below, at, name)
	})
}

// equal reports whether a file or link of the copy surely is the base's: type, mode, one
// name, content. When in doubt it is not, and comparing trees will tell.
func (w *walker) equal(dir, below int, name string, st, was *unix.Stat_t) bool {
	if st.Mode&^0o022 != was.Mode&^0o022 || st.Size != was.Size || st.Nlink != was.Nlink {
		return false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		a, err := beneath.Link(dir, name)
		b, err2 := beneath.Link(below, name)
		return err == nil && err2 == nil && a == b
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	a, size, err := beneath.File(dir, name)
	if err != nil {
		return false
	}
	defer a.Close()
	b, size2, err := beneath.File(below, name)
	if err != nil {
		return false
	}
	defer b.Close()
	return size == size2 && same(a, b, size)
}

// compareMost is how much of each of two files is read at a time.
const compareMost = 64 << 10

// same reports whether two files hold the same. Their size says how much is read at a time: most are small, and a tree has many. A byte more
// than that finds the end of both at once.
func same(a, b io.Reader, size int64) bool {
	each := int(min(size, compareMost-1)) + 1
	buf := make([]byte, 2*each)
	bufA, bufB := buf[:each], buf[each:]
	for {
		n, errA := io.ReadFull(a, bufA)
		k, errB := io.ReadFull(b, bufB)
		if n != k || !bytes.Equal(bufA[:n], bufB[:k]) {
			return false
		}
		if errA != nil || errB != nil {
			return ended(errA) && ended(errB)
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }
