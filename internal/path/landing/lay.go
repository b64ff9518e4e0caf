package landing

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
)

// lay prepares everything that will be moved, and puts it on the platter before anything moves.
func (d *desk) lay() error {
	if err := d.ops.Do("desk:make", d.make); err != nil {
		return fmt.Errorf("make room in %q: %w", d.GitDir, err)
	}
	if _, err := d.open(".new"); err != nil {
		return err
	}
	if err := (layout{d}).layFiles(); err != nil {
		return err
	}
	if err := (layout{d}).layRooms(); err != nil {
		return err
	}
	if err := d.ops.Do("desk:note", d.writeNote); err != nil {
		return fmt.Errorf("write the note of %s: %w", d.l.ID, err)
	}
	if err := d.sync("desk:sync"); err != nil {
		return err
	}
	name := deskName(d.l.ID)
	err := d.ops.Do("desk:commit", func() error {
		if err := unix.Renameat2(d.gitDir.fd(), name+".new", d.gitDir.fd(), name, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		return unix.Fsync(d.gitDir.fd())
	})
	if err != nil {
		return fmt.Errorf("complete %q: %w", name, err)
	}
	d.forget()
	d.laid = true
	return nil
}

func (d *desk) make() error {
	name := deskName(d.l.ID) + ".new"
	if err := unix.Mkdirat(d.gitDir.fd(), name, 0o700); err != nil {
		return err
	}
	if d.outside() {
		return unix.Mkdirat(d.work.fd(), slotsName(d.l), 0o700)
	}
	return unix.Mkdirat(d.gitDir.fd(), name+"/slots", 0o700)
}

func slotsName(l *Landing) string { return "." + deskName(l.ID) }

// layout fills the slots of a desk.
type layout struct{ *desk }

// layFiles writes each coming file or link into its slot, from the object store.
func (d layout) layFiles() error {
	var slots []int
	var blobs []git.OID
	for i := range d.note.Steps {
		if st := &d.note.Steps[i]; st.Live && !st.New.Absent() {
			slots, blobs = append(slots, i), append(blobs, st.New.OID)
		}
	}
	return d.objects.Blobs(blobs, func(_ git.OID, size int64, r io.Reader) error {
		i := slots[0]
		st := &d.note.Steps[i]
		slots = slots[1:]
		err := d.ops.Do("desk:write", func() error {
			if st.New.Mode == git.Symlink {
				return d.layLink(st, slot(i), size, r)
			}
			return d.layFile(st, slot(i), size, r)
		})
		if err != nil {
			return fmt.Errorf("prepare %q: %w", st.Path, err)
		}
		return nil
	})
}

func (d layout) layLink(st *step, name string, size int64, r io.Reader) error {
	if size == 0 || size > 4095 {
		return fmt.Errorf("a link's target has 1 to 4095 bytes, not %d", size)
	}
	target, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if strings.IndexByte(string(target), 0) >= 0 {
		return errors.New("a link's target has a NUL byte")
	}
	if err := unix.Symlinkat(string(target), d.slots.fd(), name); err != nil {
		return err
	}
	uid, gid := d.UID, d.GID
	if st.replaces() {
		uid, gid = st.UID, st.GID
	}
	return chown(d.slots.fd(), name, uid, gid)
}

// layFile writes a coming file. One that replaces a file has that one's owner, group, permission
// bits (but for what git's own bit says) and extended attributes; never a set-uid bit or a capability.
func (d layout) layFile(st *step, name string, size int64, r io.Reader) error {
	fd, err := beneath.Create(d.slots.fd(), name, unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	oid, err := git.HashBlob(d.ObjectFormat, size, io.TeeReader(r, f))
	if err != nil {
		return err
	}
	if oid != st.New.OID {
		return fmt.Errorf("object %s has the bytes of %s", st.New.OID, oid)
	}
	uid, gid, perm := d.UID, d.GID, uint32(0o644)
	if st.New.Mode == git.Executable {
		perm = 0o755
	}
	if regular(st.Old.Mode) {
		uid, gid, perm = st.UID, st.GID, permission(st)
	} else if st.replaces() {
		uid, gid = st.UID, st.GID
	}
	if err := chown(d.slots.fd(), name, uid, gid); err != nil {
		return err
	}
	if regular(st.Old.Mode) {
		old, err := d.work.open(st.Path, unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer unix.Close(old)
		if err := copyAttributes(old, fd); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, perm)
}

// permission is what a replaced file's bits become: git's own mode counts only where the change changed it.
func permission(st *step) uint32 {
	perm := st.Perm & 0o777
	switch {
	case st.Old.Mode == st.New.Mode:
		return perm
	case st.New.Mode == git.Executable:
		return perm | perm&0o444>>2 | 0o100
	}
	return perm &^ 0o111
}

// copyAttributes copies extended attributes, but none that grants a right or is the kernel's own business.
func copyAttributes(from, to int) error {
	const most = 64 << 10 // the kernel's own limit, of the names and of a value
	list := make([]byte, most)
	size, err := unix.Flistxattr(from, list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list extended attributes: %w", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list[:size]), "\x00"), "\x00") {
		if name != "system.posix_acl_access" && name != "system.posix_acl_default" && name != "security.selinux" && !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, most)
		n, err := unix.Fgetxattr(from, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read extended attribute %q: %w", name, err)
		}
		err = unix.Fsetxattr(to, name, value[:n], 0)
		if err != nil && !(name == "security.selinux" && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP))) {
			return fmt.Errorf("write extended attribute %q: %w", name, err)
		}
	}
	return nil
}

// layRooms makes the empty likeness of each folder that comes or may go.
func (d layout) layRooms() error {
	var coming, going []string
	for i := range d.note.Steps {
		if st := &d.note.Steps[i]; !st.Live {
			continue
		} else if st.deletes() {
			going = append(going, st.Path)
		} else {
			coming = append(coming, st.Path)
		}
	}
	stays := folders(coming)
	for _, p := range stays {
		if !d.work.isFolder(p) {
			d.note.Made = append(d.note.Made, room{p, fmt.Sprintf("made-%d", len(d.note.Made))})
		}
	}
	for _, p := range folders(going) {
		if d.work.isFolder(p) && !slices.Contains(stays, p) {
			d.note.Gone = append(d.note.Gone, room{p, fmt.Sprintf("gone-%d", len(d.note.Gone))})
		}
	}
	for _, r := range d.note.Made {
		if err := d.ops.Do("desk:room", func() error { return d.layNew(r) }); err != nil {
			return fmt.Errorf("prepare folder %q: %w", r.Path, err)
		}
	}
	for _, r := range d.note.Gone {
		if err := d.ops.Do("desk:room", func() error { return d.layLikeness(r) }); err != nil {
			return fmt.Errorf("prepare folder %q: %w", r.Path, err)
		}
	}
	return nil
}

// layNew prepares a folder that comes: the owner's, or, below a set-gid folder, of that one's group.
func (d layout) layNew(r room) error {
	gid, perm := d.GID, uint32(0o755)
	for up := path.Dir(r.Path); ; up = path.Dir(up) {
		var st unix.Stat_t
		fd, err := d.work.open(up, unix.O_PATH|unix.O_DIRECTORY)
		if err == nil {
			err = unix.Fstat(fd, &st)
			unix.Close(fd)
		}
		if err == nil {
			if st.Mode&unix.S_ISGID != 0 {
				gid, perm = st.Gid, 0o2755
			}
			break
		}
		if up == "." {
			return err
		}
	}
	if err := unix.Mkdirat(d.slots.fd(), r.Slot, 0o700); err != nil {
		return err
	}
	if err := chown(d.slots.fd(), r.Slot, d.UID, gid); err != nil {
		return err
	}
	// By descriptor: the slots lie in a folder of the repository's owner, who could put a link here.
	fd, err := beneath.Open(d.slots.fd(), r.Slot, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fchmod(fd, perm)
}

// layLikeness prepares an empty copy of a folder that may go, for the way back.
func (d layout) layLikeness(r room) error {
	from, err := d.work.open(r.Path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	var st unix.Stat_t
	if err := unix.Fstat(from, &st); err != nil {
		return err
	}
	if err := unix.Mkdirat(d.slots.fd(), r.Slot, 0o700); err != nil {
		return err
	}
	to, err := beneath.Open(d.slots.fd(), r.Slot, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	if err := chown(d.slots.fd(), r.Slot, st.Uid, st.Gid); err != nil {
		return err
	}
	if err := copyAttributes(from, to); err != nil {
		return err
	}
	return unix.Fchmod(to, st.Mode&0o7777)
}

// writeNote leaves what a recovery needs, and the files that will be git's index.lock and the branch.
func (d *desk) writeNote() error {
	raw, err := json.Marshal(d.note)
	if err != nil {
		return err
	}
	if err := d.create("note", raw, 0o600); err != nil {
		return err
	}
	text := fmt.Sprintf("%s is landing as %s; sallyport removes this lock once the landing is done or rolled back.\n", d.l.Change, d.l.ID)
	if err := d.create("lock", []byte(text), 0o644); err != nil {
		return err
	}
	if err := chown(d.dir.fd(), "lock", d.UID, d.GID); err != nil {
		return err
	}
	return d.layRefs()
}

// create writes a new file of the desk.
func (d *desk) create(name string, raw []byte, perm uint32) error {
	fd, err := beneath.Create(d.dir.fd(), name, unix.O_WRONLY, perm)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(raw)
	return errors.Join(err, f.Close())
}

// sync puts what was written so far on the platter: one call for each file system that is concerned.
func (d *desk) sync(op string) error {
	return d.ops.Do(op, func() error {
		if err := unix.Syncfs(d.gitDir.fd()); err != nil {
			return fmt.Errorf("sync %q: %w", d.GitDir, err)
		}
		if !d.outside() {
			return nil
		}
		if err := unix.Syncfs(d.work.fd()); err != nil {
			return fmt.Errorf("sync %q: %w", d.Top, err)
		}
		return nil
	})
}
