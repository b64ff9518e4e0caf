package landing

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// desk is where a landing lays out its work, in the git directory, for root or the owner alone.
//
// Its name says how far it is: with .new it is being laid out and nothing has moved; bare, it is
// complete and on the platter; with .old the landing is over and verified, and it is being cleared.
type desk struct {
	*site
	ops    disk.Ops
	l      *Landing
	note   note
	dir    *folder     // the desk itself: note, lock, next index
	slots  *folder     // on the work tree's file system: files and folders to come, then those that went
	done   []bool      // per step: its rename was made; nobody asks once it was taken back
	passed []bool      // per step: a person has made or undone it with their own git, and nothing is to move
	out    []found     // per step: the old file as it came out of the live tree, compared
	seen   []bool      // per step: its file was read again after it was moved, and is the new one
	laid   bool        // it is complete, so that something may have moved
	locked bool        // we have held the index's lock
	wrote  bool        // the index may have entries of ours
	fresh  *git.Index  // read and checked while we held the lock; nil once written
	was    unix.Stat_t // of the file that fresh was read from
	left   []string
}

// note is what a recovery reads from the desk.
type note struct {
	Steps []step `json:"steps"`
	Made  []room `json:"made"` // folders that come, each before those below it
	Gone  []room `json:"gone"` // folders that may go, each before those below it
}

// room is a folder of the work tree and its empty likeness among the slots.
type room struct {
	Path string `json:"path"`
	Slot string `json:"slot"`
}

func deskName(l id.Landing) string { return "sallyport-" + string(l) }

// stagingFor says where the slots of a landing are: in the desk if renames reach
// from there into the work tree, else in the work tree.
func (s *site) stagingFor(l id.Landing) (string, error) {
	in, err := mount(s.gitDir)
	if err != nil {
		return "", err
	}
	top, err := mount(s.work)
	if err != nil {
		return "", err
	}
	if in == top {
		return path.Join(s.GitDir, deskName(l), "slots"), nil
	}
	return path.Join(s.Top, "."+deskName(l)), nil
}

// mount identifies the file system and the mount that a folder lies on.
func mount(f *folder) ([3]uint64, error) {
	var st unix.Statx_t
	if err := unix.Statx(f.fd(), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return [3]uint64{}, fmt.Errorf("look at %q: %w", f.Name(), err)
	}
	return [3]uint64{uint64(st.Dev_major), uint64(st.Dev_minor), st.Mnt_id}, nil
}

// outside reports whether the slots lie in the work tree rather than in the desk.
func (d *desk) outside() bool { return path.Dir(d.l.Staging) == path.Clean(d.Top) }

// openDesk opens the desk of a landing under one of its names; nil if there is none.
func (d *desk) open(suffix string) (bool, error) {
	name := deskName(d.l.ID) + suffix
	fd, err := d.gitDir.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open %q: %w", path.Join(d.GitDir, name), err)
	}
	d.closeDesk()
	d.dir = &folder{File: os.NewFile(uintptr(fd), path.Join(d.GitDir, name)), format: d.ObjectFormat, fileMode: true}
	in, at := d.dir, "slots"
	if d.outside() {
		in, at = d.work, path.Base(d.l.Staging)
	}
	fd, err = in.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("open %q: %w", d.l.Staging, err)
	}
	d.slots = &folder{File: os.NewFile(uintptr(fd), d.l.Staging), format: d.ObjectFormat, fileMode: true}
	return true, nil
}

func (d *desk) closeDesk() {
	for _, f := range []*folder{d.dir, d.slots} {
		if f != nil {
			f.Close()
		}
	}
	d.dir, d.slots = nil, nil
}

// forget starts with nothing done.
func (d *desk) forget() {
	n := len(d.note.Steps)
	d.done, d.passed, d.out, d.seen = make([]bool, n), make([]bool, n), make([]found, n), make([]bool, n)
}

// stays notes that a path is left as a person has it.
func (d *desk) stays(st *step) {
	text := inert.Path(st.Path) + " was changed meanwhile, and stays as you have it"
	if !slices.Contains(d.left, text) {
		d.left = append(d.left, text)
	}
}

func slot(i int) string { return strconv.Itoa(i) }

// read takes a complete desk up again after a crash: which steps were done, the slots tell.
func (d *desk) read() error {
	if d.slots == nil {
		return fmt.Errorf("%q is gone", d.l.Staging)
	}
	if err := d.readNote(); err != nil {
		return err
	}
	d.forget()
	for i := range d.note.Steps {
		st := &d.note.Steps[i]
		if !st.Live {
			continue
		}
		f, err := lookAt(d.slots.fd(), slot(i), d.ObjectFormat)
		if err != nil {
			return err
		}
		switch {
		case st.adds():
			d.done[i] = !f.Exists
		case st.deletes():
			d.done[i] = f.Exists
		default:
			d.done[i] = !f.is(st.New, d.work.fileMode)
		}
		d.passOver(i)
	}
	d.laid = true
	return nil
}

// passOver leaves out a step that a person has made or undone with their own git since: nothing is to move. It is looked at in the end.
func (d *desk) passOver(i int) {
	st := &d.note.Steps[i]
	other, edits := st.New, d.l.Edits
	if d.done[i] {
		other, edits = st.Old, Inverse(edits)
	}
	f, err := d.work.look(st.Path)
	folder := f.isFolder() && other.Absent() && needed(st.Path, edits) // it took the file's place
	if err == nil && (folder || f.is(other, d.work.fileMode)) {
		d.passed[i], d.done[i] = true, false
	}
}

func (d *desk) readNote() error {
	fd, err := d.dir.open("note", unix.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read the note of %s: %w", d.l.ID, err)
	}
	f := os.NewFile(uintptr(fd), "note")
	defer f.Close()
	d.note = note{}
	if err := json.NewDecoder(f).Decode(&d.note); err != nil {
		return fmt.Errorf("read the note of %s: %w", d.l.ID, err)
	}
	return nil
}

// discard ends the use of a desk that is no longer needed, and clears it.
func (d *desk) discard() error {
	name := deskName(d.l.ID)
	err := d.ops.Do("desk:discard", func() error {
		return unix.Renameat2(d.gitDir.fd(), name, d.gitDir.fd(), name+".old", unix.RENAME_NOREPLACE)
	})
	if err != nil {
		return fmt.Errorf("put %q away: %w", name, err)
	}
	return d.clear()
}

// clear deletes what a landing has left under any name but the bare one. A slot whose bytes are
// not in the object store is a person's work: it is kept, and named in d.left.
func (d *desk) clear() error {
	old, err := d.open(".old")
	if err != nil {
		return err
	}
	kept := map[string]string{}
	if old && d.slots != nil && d.dir.has("note") {
		if kept, err = d.strange(); err != nil {
			return err
		}
	}
	return d.ops.Do("desk:remove", func() error {
		name := deskName(d.l.ID)
		if err := removeAll(d.gitDir.fd(), name+".new", nil); err != nil {
			return err
		}
		if len(kept) > 0 {
			return d.keep(name, kept)
		}
		if d.outside() { // before the note goes
			if err := removeAll(d.work.fd(), path.Base(d.l.Staging), nil); err != nil {
				return err
			}
		}
		return removeAll(d.gitDir.fd(), name+".old", nil)
	})
}

// strange returns the slots, with their paths, that hold neither the old nor the new of their step.
func (d *desk) strange() (map[string]string, error) {
	if len(d.done) == 0 {
		if err := d.readNote(); err != nil {
			return nil, err
		}
		d.forget()
	}
	kept := map[string]string{}
	for i := range d.note.Steps {
		st := &d.note.Steps[i]
		if d.unwritten(i) {
			continue
		}
		f, err := lookAt(d.slots.fd(), slot(i), d.ObjectFormat)
		if err != nil && !errors.Is(err, errChanging) {
			return nil, err
		}
		if err != nil || f.Exists && !f.is(st.Old, false) && !f.is(st.New, false) {
			kept[slot(i)] = st.Path
		}
	}
	return kept, nil
}

// unwritten reports whether the slot holds the file that came out of the live tree and was compared then,
// and whose time of writing, well in the past, has not changed since.
func (d *desk) unwritten(i int) bool {
	var now unix.Stat_t
	was := d.out[i].Stat // of no file if none came out
	return time.Since(time.Unix(was.Mtim.Unix())) > time.Second &&
		unix.Fstatat(d.slots.fd(), slot(i), &now, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		now.Ino == was.Ino && now.Size == was.Size && now.Mtim == was.Mtim
}

// keep leaves a person's bytes where they find them: everything else goes, and the rest is theirs.
func (d *desk) keep(name string, kept map[string]string) error {
	final := "sallyport-kept-" + string(d.l.ID)
	in, slots := d.work.fd(), path.Base(d.l.Staging)
	at := d.l.Staging
	if !d.outside() {
		in, slots, at = d.gitDir.fd(), name+".old/slots", path.Join(d.GitDir, final, "slots")
	}
	err := removeAll(in, slots, kept)
	if err != nil && !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	for n, p := range kept {
		d.left = append(d.left, fmt.Sprintf("your version of %s is kept as %s", inert.Path(p), inert.Path(path.Join(at, n))))
	}
	slices.Sort(d.left)
	for _, own := range []string{name + ".old", name + ".old/slots"} {
		if err := chown(d.gitDir.fd(), own, d.UID, d.GID); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	if d.outside() {
		if err := chown(in, slots, d.UID, d.GID); err != nil {
			return err
		}
	}
	return unix.Renameat2(d.gitDir.fd(), name+".old", d.gitDir.fd(), final, unix.RENAME_NOREPLACE)
}

// removeAll deletes name below an open folder, never through a link, but for the names in keep
// of its own entries. What is not there is deleted already.
func removeAll(at int, name string, keep map[string]string) error {
	if strings.Contains(name, "..") {
		return fmt.Errorf("delete %q: %w", name, unix.EINVAL)
	}
	err := unix.Unlinkat(at, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	fd, err := beneath.Open(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.EACCES) { // an empty likeness of a folder that nobody may read
		return rmdir(at, name)
	}
	if err != nil {
		return fmt.Errorf("delete %q: %w", name, err)
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("delete %q: %w", name, err)
	}
	for _, n := range names {
		if _, stays := keep[n]; stays {
			continue
		}
		if err := removeAll(fd, n, nil); err != nil {
			return err
		}
	}
	return rmdir(at, name)
}

func rmdir(at int, name string) error {
	if err := unix.Unlinkat(at, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("delete folder %q: %w", name, err)
	}
	return nil
}

func chown(at int, name string, uid, gid uint32) error {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Uid == uid && st.Gid == gid {
		return nil
	}
	if err := unix.Fchownat(at, name, int(uid), int(gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return problem.Errorf(problem.Refused, "", "give %q to its owner, uid %d: %w", name, uid, err)
	}
	return nil
}
