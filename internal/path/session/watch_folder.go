package session

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
)

// kind is what a name shows.
type kind uint8

const (
	nothing kind = iota
	file         // or a link, or anything else that is no folder
	dir
)

// entry is what a name shows in a folder.
type entry struct {
	kind   kind
	own    bool // it is on the writable side; else it is the base's
	ino    uint64
	at     int64 // when it changed, in ns
	size   int64
	folder *folder // of an own folder
}

func entryOf(st *unix.Stat_t, own bool) entry {
	e := entry{kind: file, own: own, ino: st.Ino, at: st.Ctim.Nano(), size: st.Size}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		e.kind, e.at, e.size = dir, 0, 0
	}
	return e
}

// folder is a folder of the writable side, and what it showed when it was last looked at.
type folder struct {
	wd     int32 // -1 = not watched
	parent *folder
	name   string
	bare   bool             // a name that is not known shows nothing; else what the base has there
	files  bool             // upper folder: empty files may stand for deletions
	closed bool             // it could not be read
	known  map[string]entry // names that show something of their own, or nothing where the base has something
}

// path returns the path below the top.
func (f *folder) path() string {
	if f.parent == nil {
		return ""
	}
	return join(f.parent.path(), f.name)
}

// visit is a folder that is to be looked at.
type visit struct {
	folder *folder
	names  map[string]bool // those that events spoke of; nil = whatever is there
	deep   bool            // and all that is below it
	gone   bool            // it is not on the writable side any more,
	bare   bool            // and nothing of the base shows in its place
}

// listing is a folder as it is now.
type listing struct {
	*folder
	visit visit
	path  string
	dir   int // the open folder, or -1
	below *layer.Base
	bare  bool // nothing of the base shows through
	again bool // it was closed before
}

// settle looks at all that events marked.
func (w *Watch) settle() {
	for f, names := range w.marked {
		w.visits = append(w.visits, visit{folder: f, names: names})
	}
	clear(w.marked)
	for len(w.visits) > 0 { // it grows meanwhile
		v := w.visits[len(w.visits)-1]
		w.visits = w.visits[:len(w.visits)-1]
		w.look(v)
	}
}

// look watches a folder, then compares what it shows with what it showed: what appears
// meanwhile is in the one or the other.
func (w *Watch) look(v visit) {
	f := v.folder
	if v.names != nil && f.wd < 0 { // it has gone since it was marked
		return
	}
	l := listing{folder: f, visit: v, path: f.path(), dir: -1, bare: v.bare, again: f.closed}
	if v.gone {
		w.unfollow(f)
	} else if err := w.enter(&l); gone(err) {
		return // its parent tells
	} else if err != nil {
		f.closed = true
		w.unwatched(cmp.Or(l.path, "."), err)
		for name := range v.names {
			w.count(join(l.path, name), fileChanged, 0)
		}
		return
	} else {
		defer unix.Close(l.dir)
	}
	l.below = w.below(l.path)
	defer l.below.Close()

	for name := range w.names(l) {
		if v.gone && w.full() {
			return
		}
		w.compare(l, name)
	}
	f.bare = l.bare
}

// enter opens and watches a folder of the writable side.
func (w *Watch) enter(l *listing) (err error) {
	if l.dir, err = beneath.Open(w.side, cmp.Or(l.path, "."), unix.O_RDONLY|unix.O_DIRECTORY); err != nil {
		return err
	}
	if err := w.follow(l.folder, l.dir); err != nil {
		unix.Close(l.dir)
		return err
	}
	l.closed = false
	l.bare = l.folder.bare
	if w.watched.Overlay {
		opaque := workspace.Opaque(l.dir)
		l.files = opaque == "x"
		l.bare = opaque == "y" || l.parent != nil && l.parent.bare
	}
	return nil
}

// names returns every name that may show something else than before.
func (w *Watch) names(l listing) map[string]bool {
	if l.visit.names != nil && l.bare == l.folder.bare && !l.again {
		return l.visit.names
	}
	names := map[string]bool{}
	add := func(name string) error {
		names[name] = true
		return nil
	}
	if l.dir >= 0 {
		if err := beneath.Names(l.dir, add); err != nil && !gone(err) {
			l.closed = true
			w.unwatched(cmp.Or(l.path, "."), err)
		}
	}
	for name := range l.known {
		names[name] = true
	}
	if l.bare != l.folder.bare || !w.watched.Overlay && !l.bare {
		_ = l.below.Names(add) // what cannot be read is the walk's to tell
	}
	return names
}

// compare counts what has become of a name since it was last looked at.
func (w *Watch) compare(l listing, name string) {
	path, touched := join(l.path, name), l.visit.names[name]
	var base entry
	var st unix.Stat_t
	if l.below.Stat(name, &st) == nil {
		base = entryOf(&st, false)
	}
	was, ok := l.known[name]
	if !ok && !l.folder.bare {
		was = base
	}
	is, err := w.shown(l, name, base)
	if err != nil {
		l.closed = true
		w.unwatched(path, err)
		if touched {
			w.count(path, fileChanged, 0)
		}
		return
	}
	if path == ".git" && (was.kind == dir || is.kind == dir) { // the mount of the agent's own git
		return
	}

	if is.kind == dir || was.kind == dir {
		w.step(l, name, was, &is)
	}
	w.keep(l, name, is, base)
	old := l.again && is.at <= w.began
	switch {
	case is.kind == file && base.kind == file && (is != was || touched && is.own):
		w.count(path, fileChanged, is.size)
	case is.kind == file && (is != was && !old || touched && is.own):
		w.count(path, fileAdded, is.size)
	case is.kind != file && was.kind == file:
		w.count(path, fileGone, 0)
	}
}

// shown says what a name shows now.
func (w *Watch) shown(l listing, name string, base entry) (entry, error) {
	var st unix.Stat_t
	err := error(unix.ENOENT)
	if l.dir >= 0 {
		err = unix.Fstatat(l.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	switch {
	case gone(err) && w.watched.Overlay && !l.bare:
		return base, nil
	case gone(err):
		return entry{}, nil
	case err != nil:
		return entry{}, err
	case w.watched.Overlay && workspace.Whiteout(l.dir, name, &st, l.files):
		return entry{}, nil
	}
	is := entryOf(&st, true)
	if _, known := l.known[name]; !known && !l.visit.names[name] && !w.watched.Overlay && !l.bare && base.kind == file && is.kind == file && is.at <= w.began {
		return base, nil // as it was copied
	}
	return is, nil
}

// step asks for a visit where a folder was, or is.
func (w *Watch) step(l listing, name string, was entry, is *entry) {
	here := &folder{wd: -1, parent: l.folder, name: name, bare: was.kind != dir}
	if was.folder != nil {
		here = was.folder
	}
	switch {
	case is.own && is.kind == dir && was.own && was.ino != is.ino: // another one in its place
		is.folder = &folder{wd: -1, parent: l.folder, name: name, bare: true}
		w.visits = append(w.visits, visit{folder: is.folder}, visit{folder: here, gone: true, bare: true})
	case is.own && is.kind == dir:
		is.folder = here
		if l.visit.names[name] || l.visit.deep || here.wd < 0 {
			w.visits = append(w.visits, visit{folder: here, deep: l.visit.deep})
		}
	case was.own || was.kind != is.kind:
		w.visits = append(w.visits, visit{folder: here, gone: true, bare: is.kind != dir})
	}
}

// keep remembers what a name shows, unless that follows from the base. What has no room
// is looked at by its own events alone.
func (w *Watch) keep(l listing, name string, is, base entry) {
	if _, ok := l.known[name]; ok {
		delete(l.known, name)
		w.known -= len(name) + entryBytes
	}
	if !is.own && (is.kind != nothing || l.bare || base.kind == nothing) {
		return
	}
	if w.known >= changedBytesMax {
		w.unwell(tooMany, "more entries than the watch remembers")
		return
	}
	if l.known == nil {
		l.folder.known = map[string]entry{}
	}
	l.folder.known[name] = is
	w.known += len(name) + entryBytes
}

// entryBytes is about what remembering one entry takes, with what a map needs.
const entryBytes = 96

// follow watches an open folder for f.
func (w *Watch) follow(f *folder, fd int) error {
	wd, err := w.queue.add(fd, mask)
	if err != nil {
		return err
	}
	if _, ok := w.folders[wd]; !ok && len(w.folders) >= w.watched.FoldersMax {
		w.queue.remove(wd) // as if it had not been asked for
		return fmt.Errorf("more than %d folders", w.watched.FoldersMax)
	}
	if f.wd != wd {
		w.unfollow(f)
	}
	f.wd, w.folders[wd] = wd, f
	return nil
}

// unfollow ends the watch of f, unless it is another's by now.
func (w *Watch) unfollow(f *folder) {
	if w.folders[f.wd] == f {
		delete(w.folders, f.wd)
		delete(w.marked, f)
		w.queue.remove(f.wd)
	}
	f.wd = -1
}

// below opens a folder of the base; nil if there is none, or it cannot be opened: the walk tells that.
func (w *Watch) below(at string) *layer.Base {
	folder, err := w.base.At(at)
	if err != nil {
		return nil
	}
	return folder
}

func join(at, name string) string {
	return strings.TrimPrefix(at+"/"+name, "/")
}

// gone reports whether err says that there is no such folder (any more).
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}
