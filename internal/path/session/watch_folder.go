package session

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// folder is a watched folder. Its path is known through its parents, as a rename moves all that is below.
type folder struct {
	wd      int32
	parent  *folder // nil = the top, or not in the workspace any more
	name    string
	folders map[string]*folder
	round   int                 // when it was last read
	fresh   map[string]struct{} // files in it that the base does not have there
	hidden  bool                // upper folder: nothing of the base shows through
	marked  bool                // upper folder: empty files may stand for deletions
	closed  bool                // it could not be read
}

// path returns the path below the top, and false for a folder that is not there any more.
func (f *folder) path() (string, bool) {
	var names []string
	for ; f.parent != nil; f = f.parent {
		names = append(names, f.name)
	}
	if f.name != "" { // detached
		return "", false
	}
	var b strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteString(names[i])
		if i > 0 {
			b.WriteByte('/')
		}
	}
	return b.String(), true
}

// detach takes f, if there is one, out of its parent. The top stays.
func (f *folder) detach() {
	if f != nil && f.parent != nil {
		delete(f.parent.folders, f.name)
		f.parent = nil
	}
}

// attach puts f at a name in parent.
func (w *Watch) attach(f, parent *folder, name string) {
	for up := parent; up != nil; up = up.parent {
		if up == f { // seen out of order: what is where is to be read again
			w.stale = true
			return
		}
	}
	f.detach()
	if before := parent.folders[name]; before != nil { // it has gone, and its events are still to be read
		if at, inside := before.path(); inside {
			w.leave(before, at)
		}
		before.detach()
	}
	if parent.folders == nil {
		parent.folders = map[string]*folder{}
	}
	parent.folders[name] = f
	f.parent, f.name = parent, name
}

// moved is the first half of a rename.
type moved struct {
	folder *folder // nil = it was not watched
	at     int64   // the reading that saw it
}

// visit is a folder to be watched and read.
type visit struct {
	parent *folder // nil = the top
	name   string
	again  bool      // read it even if it was read
	since  time.Time // count only what changed since; zero = all
}

// settle does what the events asked for.
func (w *Watch) settle() {
	for i := 0; i < len(w.visits); i++ { // it grows meanwhile
		w.enter(w.visits[i])
	}
	w.visits = nil
	for cookie, m := range w.moving {
		if m.at == w.stats.Readings {
			continue // the other half may be the next event
		}
		delete(w.moving, cookie) // it was moved out of the workspace
		if m.folder != nil {
			w.forget(m.folder)
		}
	}
	for at, l := range w.looks {
		w.look(at, l)
	}
	clear(w.looks)
	for path := range w.left {
		if !w.stands(path) {
			w.count(path, fileGone, 0)
		}
	}
	clear(w.left)
	for h := range w.hid {
		w.covered(h)
	}
	clear(w.hid)
}

// leave notes what is not at a path any more once the folder f, which may be nil, has left it.
func (w *Watch) leave(f *folder, path string) {
	w.leaveBelow(f, path, false)
}

// leaveBelow notes the files of the base too, unless that is done or the base would show through.
func (w *Watch) leaveBelow(f *folder, path string, based bool) {
	if !based && (!w.watched.Overlay || f != nil && f.hidden) {
		w.hid[hidden{path, false}] = true
		based = true
	}
	if f == nil {
		return
	}
	for name := range f.fresh {
		w.left[join(path, name)] = true
	}
	for name, inner := range f.folders {
		w.leaveBelow(inner, join(path, name), based)
	}
}

// knows reports whether a file of that name was seen that only the writable side has; f may be nil.
func (f *folder) knows(name string) bool {
	if f == nil {
		return false
	}
	_, ok := f.fresh[name]
	return ok
}

// remember keeps the name of a file that only the writable side has: when its folder goes, nothing else knows of it.
func (w *Watch) remember(f *folder, name string) {
	if f == nil {
		return
	}
	if _, ok := f.fresh[name]; ok {
		return
	}
	if w.known >= changedBytesMax {
		w.unwell(tooMany, "files in renamed folders, more of them than the watch remembers")
		return
	}
	if f.fresh == nil {
		f.fresh = map[string]struct{}{}
	}
	f.fresh[name] = struct{}{}
	w.known += len(name) + 64 // with what a map needs
}

func (w *Watch) unremember(f *folder, name string) {
	if f == nil {
		return
	}
	if _, ok := f.fresh[name]; ok {
		delete(f.fresh, name)
		w.known -= len(name) + 64
	}
}

// drop lets go of a folder that is not watched any more.
func (w *Watch) drop(f *folder) {
	for name := range f.fresh {
		w.unremember(f, name)
	}
	delete(w.folders, f.wd)
}

// at returns the watched folder at a path; nil if there is none.
func (w *Watch) at(path string) *folder {
	f := w.root
	if path == "" {
		return f
	}
	for name := range strings.SplitSeq(path, "/") {
		if f = f.folders[name]; f == nil {
			return nil
		}
	}
	return f
}

// forget stops watching a folder that has left, and all below it.
func (w *Watch) forget(f *folder) {
	if _, inside := f.path(); inside {
		return
	}
	pending := []*folder{f}
	for len(pending) > 0 {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, inner := range f.folders {
			pending = append(pending, inner)
		}
		w.unfollow(f)
	}
}

func (w *Watch) unfollow(f *folder) {
	if w.folders[f.wd] == f {
		w.drop(f)
		_, _ = unix.InotifyRmWatch(w.fd, uint32(f.wd)) // it may have gone with its folder
	}
}

// follow watches an open folder; one that is watched already keeps its descriptor.
func (w *Watch) follow(fd int) (int32, error) {
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(fd), mask)
	return int32(wd), err
}

// enter watches one folder, then reads it: what appears meanwhile is in the one or the other.
func (w *Watch) enter(v visit) {
	if v.parent == nil {
		w.scan(w.root, v)
		return
	}
	at, inside := v.parent.path()
	if !inside {
		return
	}
	path := join(at, v.name)
	fd, err := beneath.Open(w.side, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if gone(err) {
		w.note(v.parent, at, v.name, true)
		return
	}
	if err != nil {
		w.unwatched(path, err)
		return
	}
	defer unix.Close(fd)
	wd, err := w.follow(fd)
	if err != nil {
		w.unwatched(path, err)
		return
	}
	f := w.folders[wd]
	if f == nil {
		if len(w.folders) >= w.watched.FoldersMax {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd)) // as if it had not been asked for
			w.unwatched(path, fmt.Errorf("more than %d folders", w.watched.FoldersMax))
			return
		}
		f = &folder{wd: wd, round: -1}
		w.folders[wd] = f
		if w.opened {
			w.note(v.parent, at, v.name, true) // it may stand in the place of a file
		}
	}
	if f.parent != v.parent || f.name != v.name {
		if was, inside := f.path(); inside && f.name != "" {
			w.leave(f, was)
		}
		v.again = true
		w.attach(f, v.parent, v.name)
	}
	if f.round == w.round && !v.again && !f.closed {
		return
	}
	w.scanOpen(f, fd, path, v)
}

// scan reads the top.
func (w *Watch) scan(f *folder, v visit) {
	fd, err := beneath.Open(w.side, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		f.closed = true
		w.unwatched(".", err)
		return
	}
	defer unix.Close(fd)
	w.scanOpen(f, fd, "", v)
}

// scanOpen reads a folder that is watched: its files count, its folders are to be entered.
func (w *Watch) scanOpen(f *folder, fd int, at string, v visit) {
	f.round, f.closed = w.round, false
	f.hidden = f.parent != nil && f.parent.hidden
	if w.watched.Overlay {
		opaque := opaqueMark(fd)
		f.marked = opaque == "x"
		if opaque == "y" && !f.hidden {
			f.hidden = true
			if w.opened {
				w.hid[hidden{at, false}] = true
			}
		}
	}
	below := w.below(at)
	defer below.Close()
	here := spot{folder: f, dir: fd, below: below, at: at, hidden: f.hidden, marked: f.marked}
	err := beneath.Names(fd, func(name string) error {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			if !gone(err) {
				f.closed = true
				w.unwatched(join(at, name), err)
			}
			return nil
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			if at != "" || name != ".git" {
				w.visits = append(w.visits, visit{parent: f, name: name, again: v.again, since: v.since})
			}
			return nil
		}
		if v.since.IsZero() || st.Ctim.Nano() >= v.since.UnixNano() {
			w.judge(here, name, false)
		} else if !inBase(below, name) {
			w.remember(f, name)
		}
		return nil
	})
	if err != nil && !gone(err) {
		f.closed = true
		w.unwatched(cmp.Or(at, "."), err)
	}
}

// rescan reads the whole tree after events were lost, and counts what changed since the
// queue was last seen empty. It takes a twentieth of the time at the most.
func (w *Watch) rescan() {
	began := time.Now()
	w.stale = false
	w.round++
	since := w.synced.Add(-50 * time.Millisecond) // the kernel stamps files by a clock that ticks slowly
	if since.Before(w.began) {
		since = w.began
	}
	for _, f := range w.root.folders {
		if at, inside := f.path(); inside {
			w.leave(f, at)
		}
	}
	for name := range w.root.fresh {
		w.left[name] = true
	}
	for _, f := range w.folders {
		f.folders = nil
		if f != w.root {
			f.parent = nil
		}
	}
	w.visits = append(w.visits, visit{since: since})
	w.settle()
	for _, f := range w.folders {
		if f.round != w.round && f != w.root {
			w.unfollow(f)
		}
	}
	w.synced = began
	w.news = true
	w.rescanAt = time.Now().Add(max(time.Second, 20*time.Since(began)))
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "/" + name
}

// gone reports whether err says that there is no such folder (any more).
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func closeFolder(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
