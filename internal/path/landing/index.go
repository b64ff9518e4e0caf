package landing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
)

// lockIndex takes git's own lock on the index: a hard link to a file of the desk, so that a
// recovery knows it by its inode. ErrOddState if a person's git holds it for longer than patience.
func (d *desk) lockIndex(ctx context.Context, patience time.Duration) error {
	took, err := poll(ctx, patience, func() (bool, error) {
		err := d.ops.Do("index:lock", func() error {
			return unix.Linkat(d.dir.fd(), "lock", d.gitDir.fd(), "index.lock", 0)
		})
		if errors.Is(err, unix.EEXIST) {
			return d.ownLock(), nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("lock the index of %q: %w", d.Top, err)
	}
	if !took {
		return d.lockedOut(path.Join(d.GitDir, "index.lock"))
	}
	d.locked = true
	return nil
}

// ownLock reports whether the index's lock is ours.
func (d *desk) ownLock() bool { return d.own(d.gitDir, "index.lock", "lock") }

// own reports whether p is one of the desk's files, by its inode.
func (d *desk) own(in *folder, p string, files ...string) bool {
	var own, now unix.Stat_t
	if d.dir == nil || in.stat(p, &now) != nil {
		return false
	}
	return slices.ContainsFunc(files, func(name string) bool {
		return unix.Fstatat(d.dir.fd(), name, &own, unix.AT_SYMLINK_NOFOLLOW) == nil && own.Ino == now.Ino && own.Dev == now.Dev
	})
}

// unlock removes a lock if it is one of the desk's files. It is moved away first and looked at there, so
// that one which a person's git took in its place is never deleted.
func (d *desk) unlock(op string, in *folder, p string, files ...string) error {
	if !d.own(in, p, files...) {
		return nil
	}
	fd, name, err := in.parent(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return d.ops.Do(op, func() error {
		if err := unix.Unlinkat(d.dir.fd(), "unlocked", 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		err := unix.Renameat2(fd, name, d.dir.fd(), "unlocked", unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil || d.own(d.dir, "unlocked", files...) {
			return err
		}
		return unix.Renameat2(d.dir.fd(), "unlocked", fd, name, unix.RENAME_NOREPLACE)
	})
}

func (d *desk) unlockIndex() error {
	if err := d.unlock("index:unlock", d.gitDir, "index.lock", "lock"); err != nil {
		return fmt.Errorf("unlock the index of %q: %w", d.Top, err)
	}
	return nil
}

// checked reads the index and compares its checksum, once for as long as we hold its lock and do not write it.
func (d *desk) checked() (*git.Index, error) {
	if !d.ownLock() {
		return nil, d.oddState(d.command("status"), "another program removed the lock that sallyport held on the index of %q", d.Top)
	}
	if d.fresh != nil {
		return d.fresh, nil
	}
	x, was, err := d.index()
	if err != nil {
		return nil, err
	}
	if err := x.Check(); err != nil {
		return nil, d.oddState(d.command("status"), "the index of %q cannot be read: %v", d.Top, err)
	}
	d.fresh, d.was = x, was
	return x, nil
}

// stillClean looks at the index again, now that nobody else can write it.
func (d *desk) stillClean() error {
	x, err := d.checked()
	if err != nil {
		return err
	}
	for i := range d.note.Steps {
		st := &d.note.Steps[i]
		if now := x.Entry(st.Path); now.Entry != st.Staged.Entry || now.IntentToAdd || now.SkipWorktree {
			return d.dirty(d.command("diff --cached -- "+inert.Path(st.Path)), "somebody staged %s while the landing was under way", inert.Path(st.Path))
		}
		if !st.Index {
			continue
		}
		if err := d.cleanNeighbours(x, st.Path, d.l.Edits); err != nil {
			return err
		}
	}
	return nil
}

// setIndex stages the new side of the steps, or the old one, and nothing else. An entry that a person
// has changed meanwhile is left alone.
func (d *desk) setIndex(forward bool, only pick) error {
	x, err := d.checked()
	if err != nil {
		return err
	}
	set := map[string]git.Staged{}
	for i := range d.note.Steps {
		st := &d.note.Steps[i]
		if !st.Index || only != nil && !only(i) {
			continue
		}
		now, from, to := x.Entry(st.Path), st.Old, st.New
		if !forward {
			from, to = st.New, st.Old
		}
		if now.Entry != from {
			continue
		}
		if to.Absent() {
			set[st.Path] = git.Staged{}
			continue
		}
		stat := d.work.freshStat(st.Path, to)
		d.seen[i] = forward && stat != git.Stat{}
		set[st.Path] = git.Staged{Entry: to, AssumeValid: now.AssumeValid || now.Absent() && st.Staged.AssumeValid, Stat: stat}
	}
	if len(set) == 0 {
		return nil
	}
	raw, err := x.Replace(set)
	if err != nil {
		return fmt.Errorf("stage what landed: %w", err)
	}
	d.fresh = nil
	return d.writeIndex(raw, d.was)
}

// writeIndex puts a new index in place of the old one, with its owner and mode, by one rename.
func (d *desk) writeIndex(raw []byte, was unix.Stat_t) error {
	perm, uid, gid := was.Mode&0o777, was.Uid, was.Gid
	if was.Ino == 0 {
		perm, uid, gid = 0o644, d.UID, d.GID
	}
	err := d.ops.Do("index:write", func() error {
		if err := unix.Unlinkat(d.dir.fd(), "index", 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		if err := d.create("index", raw, 0o600); err != nil {
			return err
		}
		if err := chown(d.dir.fd(), "index", uid, gid); err != nil {
			return err
		}
		fd, err := beneath.Open(d.dir.fd(), "index", unix.O_RDONLY)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "index")
		defer f.Close()
		if err := unix.Fchmod(fd, perm); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return fmt.Errorf("write the index of %q: %w", d.Top, err)
	}
	d.wrote = true
	err = d.ops.Do("index:swap", func() error { return unix.Renameat(d.dir.fd(), "index", d.gitDir.fd(), "index") })
	if err != nil {
		return fmt.Errorf("write the index of %q: %w", d.Top, err)
	}
	return nil
}
