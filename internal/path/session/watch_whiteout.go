package session

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// whiteout reports whether an entry of an upper folder stands for a deletion. The
// workspace's walk, which decides, reads the same marks.
func (w *Watch) whiteout(s spot, name string, st *unix.Stat_t) bool {
	if !w.watched.Overlay {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		return st.Rdev == 0
	case unix.S_IFREG:
		if !s.marked || st.Size != 0 {
			return false
		}
		_, err := unix.Lgetxattr("/proc/self/fd/"+strconv.Itoa(s.dir)+"/"+name, "user.overlay.whiteout", nil)
		return err == nil
	}
	return false
}

// opaqueMark returns what overlayfs says of an open upper folder: y = nothing of the base
// shows through, x = empty files may be whiteouts. What an agent sets by that name arrives by another.
func opaqueMark(fd int) string {
	value := make([]byte, 16)
	n, err := unix.Fgetxattr(fd, "user.overlay.opaque", value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}
