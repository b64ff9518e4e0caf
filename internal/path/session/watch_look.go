package session

import (
	"errors"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/path/workspace"
)

// What happened to a path, seen from the base: the same file written twice is added
// twice if the base does not have it.
const (
	fileAdded   = "add"
	fileChanged = "change"
	fileGone    = "unlink"
)

// look is the names of one folder that events spoke of.
type look struct {
	hidden, marked bool
	names          map[string]bool // and whether the event was of a folder
}

// note asks for a look at a name once all events are taken.
func (w *Watch) note(f *folder, at, name string, wasFolder bool) {
	l := w.looks[at]
	if l == nil {
		l = &look{hidden: f.hidden, marked: f.marked, names: map[string]bool{}}
		w.looks[at] = l
	}
	before, seen := l.names[name]
	l.names[name] = wasFolder && (before || !seen)
}

// spot is a folder on both sides.
type spot struct {
	folder         *folder // nil = not watched
	dir            int     // open folder, or -1
	below          *workspace.Base
	at             string
	hidden, marked bool
	closed         bool // dir lets nobody look
}

// hidden is a folder of the base that is gone, or only the files of it that are.
type hidden struct {
	path  string
	whole bool
}

func (w *Watch) look(at string, l *look) {
	path := at
	if path == "" {
		path = "."
	}
	dir, err := beneath.Open(w.side, path, unix.O_PATH|unix.O_DIRECTORY)
	closed := err != nil && !gone(err)
	if closed {
		w.unwatched(path, err)
	}
	defer closeFolder(dir)
	below := w.below(at)
	defer below.Close()
	here := spot{folder: w.at(at), dir: dir, below: below, at: at, hidden: l.hidden || dir < 0, marked: l.marked, closed: closed}
	for name, wasFolder := range l.names {
		w.judge(here, name, wasFolder)
	}
}

// judge says what has become of a path, from what is there now on both sides, and counts it.
func (w *Watch) judge(s spot, name string, wasFolder bool) {
	path := join(s.at, name)
	var above, base unix.Stat_t
	var err error = unix.ENOENT
	if s.closed {
		err = unix.EACCES
	} else if s.dir >= 0 {
		err = unix.Fstatat(s.dir, name, &above, unix.AT_SYMLINK_NOFOLLOW)
	}
	based := s.below.Stat(name, &base) == nil
	baseFolder := based && base.Mode&unix.S_IFMT == unix.S_IFDIR
	exists := err == nil && !w.whiteout(s, name, &above)
	isFolder := exists && above.Mode&unix.S_IFMT == unix.S_IFDIR
	closed := errors.Is(err, unix.EACCES) // its folder lets nobody look
	shows := w.watched.Overlay && err != nil && !closed && !s.hidden && based
	known := s.folder.knows(name)
	if !exists && !closed || isFolder || based && !baseFolder {
		w.unremember(s.folder, name)
	}
	switch {
	case isFolder:
		if known || !wasFolder && !based || based && !baseFolder && !s.hidden {
			w.count(path, fileGone, 0) // a folder in the place of a file
		}
	case exists && based && !baseFolder:
		w.count(path, fileChanged, above.Size)
	case exists:
		if baseFolder && !known { // it has just taken the folder's place
			w.hid[hidden{path, true}] = true
		}
		w.remember(s.folder, name)
		w.count(path, fileAdded, above.Size)
	case closed:
		w.count(path, fileChanged, 0)
	case shows && !baseFolder: // the base shows again
		w.count(path, fileChanged, base.Size)
	default:
		if known || !baseFolder && (based || !wasFolder) {
			w.count(path, fileGone, 0)
		}
		if baseFolder && !shows {
			w.hid[hidden{path, true}] = true
		}
	}
}

// covered counts every file of the base below a folder that is not there any more on the writable side.
func (w *Watch) covered(h hidden) {
	pending := []string{h.path}
	for len(pending) > 0 {
		at := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		folder := w.below(at)
		_ = folder.Names(func(name string) error { // what cannot be read is the walk's to tell
			var st unix.Stat_t
			inner := join(at, name)
			if inner == ".git" || folder.Stat(name, &st) != nil || w.full() {
				return nil
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				pending = append(pending, inner)
				return nil
			}
			if h.whole || !w.stands(inner) {
				w.count(inner, fileGone, 0)
			}
			return nil
		})
		folder.Close()
	}
}

// inBase reports whether a folder of the base has an entry of that name.
func inBase(below *workspace.Base, name string) bool {
	var st unix.Stat_t
	return below.Stat(name, &st) == nil
}

// stands reports whether something that is no folder is at a path of the writable side.
func (w *Watch) stands(path string) bool {
	fd, err := beneath.Look(w.side, path)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return false
	}
	return !w.watched.Overlay || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0
}

// below opens a folder of the base; nil if there is none, or it cannot be opened: the walk tells that.
func (w *Watch) below(at string) *workspace.Base {
	folder, err := w.base.At(at)
	if err != nil {
		return nil
	}
	return folder
}
