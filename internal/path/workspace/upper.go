package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"sallyport/internal/path/layer"

	"golang.org/x/sys/unix"
)

// What overlayfs writes on the upper side under the mount option userxattr. Only these
// exact names mean anything: one that an agent sets through the merged view arrives
// escaped, as user.overlay.overlay.…
const (
	xattrPrefix   = "user.overlay."
	xattrOpaque   = xattrPrefix + "opaque"   // y: nothing of the base shows through; x: look for whiteouts among files
	xattrWhiteout = xattrPrefix + "whiteout" // of an empty file in an x folder: a deletion
	xattrRedirect = xattrPrefix + "redirect" // never written as we mount; what it says would change what the tree is
	xattrMetacopy = xattrPrefix + "metacopy"
)

// upperEntry decodes one entry of an upper folder.
func (w *walker) upperEntry(dir int, below *layer.Base, at place, name string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.upperFolder(dir, below, at, name)
	case unix.S_IFCHR:
		if layer.IsWhiteout(st) {
			return w.gone(below, at, name)
		}
	case unix.S_IFREG:
		marks, err := fileMarks(dir, name)
		if err != nil {
			w.unreadable(below, at, name, err.Error())
			return nil
		}
		if marks.metacopy {
			return fmt.Errorf("%q has its content elsewhere (metacopy), which no mount of sallyport's allows", at.join(name))
		}
		if marks.whiteout && at.marked && st.Size == 0 {
			return w.gone(below, at, name)
		}
	}
	if err := w.replaced(below, at, name); err != nil {
		return err
	}
	w.put(dir, below, at, name, st)
	return nil
}

// replaced records what vanished because something that is no folder took its place.
func (w *walker) replaced(below *layer.Base, at place, name string) error {
	var st unix.Stat_t
	if err := below.Stat(name, &st); errors.Is(err, unix.ENOENT) || err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil // no folder of the base is opened for what it does not have
	} else if err != nil {
		return err
	}
	return w.allGone(below, at, name)
}

func (w *walker) upperFolder(dir int, below *layer.Base, at place, name string) error {
	under, err := below.Folder(name)
	if err != nil {
		return err
	}
	defer under.Close()
	if under == nil {
		if err := w.gone(below, at, name); err != nil { // a folder in the place of a file
			return err
		}
	}
	return w.enter(dir, below, at, name, func(fd int, inner place) error {
		marks, err := folderMarks(fd)
		if err != nil {
			w.unreadable(below, at, name, err.Error())
			return nil
		}
		if marks.redirect {
			return fmt.Errorf("%q is shown elsewhere (redirect), which no mount of sallyport's allows", inner.path)
		}
		inner.hidden = at.hidden || marks.opaque == "y"
		inner.marked = marks.opaque == "x"
		if err := w.folder(fd, under, inner); err != nil || !inner.hidden {
			return err
		}
		return w.missing(fd, under, inner)
	})
}

// marks are the extended attributes of overlayfs on one upper entry.
type marks struct {
	opaque                       string // value of user.overlay.opaque; of folders only
	whiteout, redirect, metacopy bool
}

// fileMarks reads the marks of the file name in dir. It goes by way of the descriptor's
// link in /proc, as no call takes a folder and a name; name itself is not followed.
func fileMarks(dir int, name string) (marks, error) {
	path := "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
	list, err := listed(func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) })
	return decodeMarks(list), err
}

// folderMarks reads the marks of an open folder.
func folderMarks(fd int) (marks, error) {
	list, err := listed(func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) })
	m := decodeMarks(list)
	if err != nil || m.opaque == "" {
		return m, err
	}
	value := make([]byte, 16)
	n, err := unix.Fgetxattr(fd, xattrOpaque, value)
	if err != nil {
		return m, fmt.Errorf("its attribute %s: %w", xattrOpaque, err)
	}
	m.opaque = string(value[:n])
	return m, nil
}

// decodeMarks reads a list of attribute names, each ended by a zero byte. opaque is set
// to "?" until its value is read.
func decodeMarks(list []byte) marks {
	var m marks
	for name := range bytes.SplitSeq(list, []byte{0}) {
		switch string(name) {
		case xattrOpaque:
			m.opaque = "?"
		case xattrWhiteout:
			m.whiteout = true
		case xattrRedirect:
			m.redirect = true
		case xattrMetacopy:
			m.metacopy = true
		}
	}
	return m
}

// Opaque returns what overlayfs says of an open upper folder: y = nothing of the base shows through, x = empty files
// may be whiteouts, "" = neither, or that it cannot be read: the walk tells that.
func Opaque(fd int) string {
	marks, err := folderMarks(fd)
	if err != nil {
		return ""
	}
	return marks.opaque
}

// Whiteout reports whether the entry name of an upper folder stands for a deletion. files says that empty files may.
func Whiteout(dir int, name string, st *unix.Stat_t, files bool) bool {
	if !files || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != 0 {
		return layer.IsWhiteout(st)
	}
	marks, err := fileMarks(dir, name)
	return err == nil && marks.whiteout
}

// listed calls list with a growing buffer until the names of all attributes fit.
func listed(list func([]byte) (int, error)) ([]byte, error) {
	for size := 1 << 10; ; size *= 4 {
		buf := make([]byte, size)
		n, err := list(buf)
		switch {
		case err == nil:
			return buf[:n], nil
		case errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOENT):
			return nil, nil
		case !errors.Is(err, unix.ERANGE) || size > 1<<20:
			return nil, fmt.Errorf("its extended attributes: %w", err)
		}
	}
}
