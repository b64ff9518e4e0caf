package landing

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// live is the work tree while its files and a desk's slots change places.
type live struct{ *desk }

// pick says which steps a pass is about; nil is all of them.
type pick func(i int) bool

// each does something to the live steps for which is holds, in path order, until one fails.
func (d live) each(only pick, is func(*step) bool, do func(i int) error) error {
	for i := range d.note.Steps {
		st := &d.note.Steps[i]
		if st.Live && !d.passed[i] && is(st) && (only == nil || only(i)) {
			if err := do(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// forward makes the live tree new: deletions, the folders they empty, replacements, folders that
// come, additions. At every instant each path is its old file or its new one.
//
// It stops at the first file that is not what was expected, and puts that one back: ErrDirty.
func (d live) forward(only pick) error {
	if err := d.each(only, func(*step) bool { return true }, d.checkSlot); err != nil {
		return err
	}
	if err := d.each(only, (*step).deletes, d.takeOut); err != nil {
		return err
	}
	for _, r := range slices.Backward(d.note.Gone) {
		if err := d.dropRoom(r); err != nil {
			return err
		}
	}
	if err := d.each(only, (*step).replaces, d.exchange); err != nil {
		return err
	}
	return d.each(only, (*step).adds, d.putIn)
}

// checkSlot refuses to go on if what an earlier run took out was not the old file: a person
// had changed it a moment before, and gets it back.
func (d live) checkSlot(i int) error {
	st := &d.note.Steps[i]
	if !d.done[i] || st.adds() {
		return nil
	}
	f, err := lookAt(d.slots.fd(), slot(i), d.ObjectFormat)
	if err != nil && !errors.Is(err, errChanging) {
		return err
	}
	if err != nil || !st.untouched(f, d.work.fileMode) {
		return d.edited(st)
	}
	return nil
}

func (d live) edited(st *step) error {
	return d.dirty(d.command("diff -- "+inert.Path(st.Path)), "somebody changed %s while the landing was under way", inert.Path(st.Path))
}

// at runs do with the open folder of a step's path and its last name.
func (d live) at(p string, do func(fd int, name string) error) error {
	fd, name, err := d.work.parent(p)
	if err != nil {
		var way *inWay
		if errors.As(err, &way) {
			return d.unreadable(p, err)
		}
		return err
	}
	defer unix.Close(fd)
	return do(fd, name)
}

// takeOut moves a file that is to vanish into its slot.
func (d live) takeOut(i int) error {
	st := &d.note.Steps[i]
	if d.done[i] {
		return nil
	}
	return d.at(st.Path, func(fd int, name string) error {
		err := d.ops.Do("tree:delete", func() error {
			return unix.Renameat2(fd, name, d.slots.fd(), slot(i), unix.RENAME_NOREPLACE)
		})
		if errors.Is(err, unix.ENOENT) {
			return d.edited(st)
		}
		if err != nil {
			return d.refused("delete", st.Path, err)
		}
		d.done[i] = true
		return d.expect(i, func() error {
			return d.ops.Do("tree:restore", func() error {
				return unix.Renameat2(d.slots.fd(), slot(i), fd, name, unix.RENAME_NOREPLACE)
			})
		})
	})
}

// exchange lets a live file and its slot change places.
func (d live) exchange(i int) error {
	st := &d.note.Steps[i]
	if d.done[i] {
		return nil
	}
	return d.at(st.Path, func(fd int, name string) error {
		swap := func() error {
			return unix.Renameat2(d.slots.fd(), slot(i), fd, name, unix.RENAME_EXCHANGE)
		}
		err := d.ops.Do("tree:replace", swap)
		if errors.Is(err, unix.ENOENT) {
			return d.edited(st)
		}
		if err != nil {
			return d.refused("replace", st.Path, err)
		}
		d.done[i] = true
		return d.expect(i, func() error { return d.ops.Do("tree:restore", swap) })
	})
}

// expect compares what came out of the live tree with the old file. If it differs a person was
// faster: it goes back.
func (d live) expect(i int, back func() error) error {
	st := &d.note.Steps[i]
	f, err := lookAt(d.slots.fd(), slot(i), d.ObjectFormat)
	because := d.edited(st)
	if err == nil && st.untouched(f, d.work.fileMode) {
		if !d.held(i) {
			d.out[i] = f
			return nil
		}
		because = d.dirty("fuser -v "+inert.Path(d.Top+"/"+st.Path), "some program has %s open for writing", inert.Path(st.Path))
	}
	if err != nil && !errors.Is(err, errChanging) {
		return fmt.Errorf("look at what was %q: %w", st.Path, err)
	}
	err = back()
	if err == nil {
		d.done[i] = false
	}
	if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("restore %q: %w", st.Path, err)
	}
	return because
}

// held reports whether some process has the file in a slot open for writing: its next write
// would go to the file that was taken away.
func (d live) held(i int) bool {
	fd, err := beneath.Open(d.slots.fd(), slot(i), unix.O_RDONLY)
	if err != nil {
		return false // a link
	}
	defer unix.Close(fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK) // ends with the descriptor
	return errors.Is(err, unix.EAGAIN)
}

// putIn moves a new file from its slot into the live tree, with the folders it needs.
func (d live) putIn(i int) error {
	st := &d.note.Steps[i]
	if d.done[i] {
		return nil
	}
	if err := d.giveRooms(d.note.Made, st.Path); err != nil {
		return err
	}
	return d.at(st.Path, func(fd int, name string) error {
		err := d.ops.Do("tree:add", func() error {
			return unix.Renameat2(d.slots.fd(), slot(i), fd, name, unix.RENAME_NOREPLACE)
		})
		if errors.Is(err, unix.EEXIST) {
			return d.edited(st)
		}
		if err != nil {
			return d.refused("add", st.Path, err)
		}
		d.done[i] = true
		return nil
	})
}

// giveRooms moves the prepared folders above p that are missing into place.
func (d live) giveRooms(rooms []room, p string) error {
	for _, up := range folders([]string{p}) {
		k := slices.IndexFunc(rooms, func(r room) bool { return r.Path == up })
		if k < 0 || d.work.isFolder(up) {
			continue
		}
		err := d.at(up, func(fd int, name string) error {
			return d.ops.Do("tree:mkdir", func() error {
				if d.slots.has(rooms[k].Slot) {
					return unix.Renameat2(d.slots.fd(), rooms[k].Slot, fd, name, unix.RENAME_NOREPLACE)
				}
				if err := unix.Mkdirat(fd, name, 0o755); err != nil { // used once, and taken back since
					return err
				}
				return chown(fd, name, d.UID, d.GID)
			})
		})
		if errors.Is(err, unix.EEXIST) && d.work.isFolder(up) {
			continue
		}
		if errors.Is(err, unix.EEXIST) {
			return d.unreadable(p, &inWay{up, "is not a folder"})
		}
		if err != nil {
			return d.refused("add", up, err)
		}
	}
	return nil
}

// dropRoom deletes a folder if it is empty.
func (d live) dropRoom(r room) error {
	if !d.work.isFolder(r.Path) {
		return nil
	}
	err := d.at(r.Path, func(fd int, name string) error {
		return d.ops.Do("tree:rmdir", func() error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) })
	})
	if err == nil || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.refused("delete", r.Path, err)
}

// refused explains a rename that the kernel would not do.
func (d live) refused(verb, p string, err error) error {
	if errors.Is(err, unix.EINVAL) {
		return problem.Errorf(problem.Refused, "findmnt -T "+inert.Path(d.Top),
			"the file system of %q cannot exchange two files in one step (renameat2), so nothing can land there safely: %w", d.Top, err)
	}
	return fmt.Errorf("%s %q in %q: %w", verb, p, d.Top, err)
}

// backward makes the live tree old again by the same renames. What a person has changed since is
// theirs and stays: it is named in d.left. It goes on past that, and ends with the first real error.
func (d live) backward(only pick) error {
	if err := d.each(only, (*step).adds, d.takeBack); err != nil {
		return err
	}
	for _, r := range slices.Backward(d.note.Made) {
		if err := d.dropMade(r); err != nil {
			return err
		}
	}
	if err := d.each(only, (*step).replaces, d.exchangeBack); err != nil {
		return err
	}
	return d.each(only, (*step).deletes, d.putBack)
}

// takeBack moves a file that was added back into its slot.
func (d live) takeBack(i int) error {
	st := &d.note.Steps[i]
	if !d.done[i] {
		return nil
	}
	err := d.at(st.Path, func(fd int, name string) error {
		err := d.ops.Do("tree:unadd", func() error {
			return unix.Renameat2(fd, name, d.slots.fd(), slot(i), unix.RENAME_NOREPLACE)
		})
		if err != nil {
			return err
		}
		f, err := lookAt(d.slots.fd(), slot(i), d.ObjectFormat)
		if err == nil && f.is(st.New, d.work.fileMode) {
			return nil
		}
		d.stays(st)
		err = d.ops.Do("tree:restore", func() error {
			return unix.Renameat2(d.slots.fd(), slot(i), fd, name, unix.RENAME_NOREPLACE)
		})
		if errors.Is(err, unix.EEXIST) {
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || problem.KindOf(err) == problem.Refused {
		d.stays(st) // they deleted or moved it
		return nil
	}
	return err
}

// exchangeBack lets a replaced file and its slot change places again. What is there instead is theirs, and told in the end if it is
// another than the old one.
func (d live) exchangeBack(i int) error {
	st := &d.note.Steps[i]
	if !d.done[i] {
		return nil
	}
	err := d.at(st.Path, func(fd int, name string) error {
		swap := func() error {
			return unix.Renameat2(d.slots.fd(), slot(i), fd, name, unix.RENAME_EXCHANGE)
		}
		if err := d.ops.Do("tree:unreplace", swap); err != nil {
			return err
		}
		f, err := lookAt(d.slots.fd(), slot(i), d.ObjectFormat)
		if err == nil && f.is(st.New, d.work.fileMode) {
			return nil
		}
		return d.ops.Do("tree:restore", swap)
	})
	if errors.Is(err, fs.ErrNotExist) || problem.KindOf(err) == problem.Refused {
		return nil
	}
	return err
}

// putBack moves a deleted file out of its slot, with the folders it lay in.
func (d live) putBack(i int) error {
	st := &d.note.Steps[i]
	if !d.done[i] {
		return nil
	}
	err := d.giveRooms(d.note.Gone, st.Path)
	if err == nil {
		err = d.at(st.Path, func(fd int, name string) error {
			return d.ops.Do("tree:undelete", func() error {
				return unix.Renameat2(d.slots.fd(), slot(i), fd, name, unix.RENAME_NOREPLACE)
			})
		})
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, fs.ErrNotExist) || problem.KindOf(err) == problem.Refused {
		return nil // what is there is theirs, and told in the end if it is another
	}
	return err
}

// dropMade takes back a folder that a landing made, unless something is in it. Its likeness is
// gone from the slots exactly if it was moved into place.
func (d live) dropMade(r room) error {
	if d.slots.has(r.Slot) {
		return nil
	}
	return d.dropRoom(r)
}
