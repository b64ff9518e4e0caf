package landing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// The files of a desk that become the branch: each is first its lock, then, by one rename, the branch itself.
const (
	refNew = "ref-new" // names the new commit
	refOld = "ref-old" // names the old one, for the way back
)

func (l Landing) ref() string     { return "refs/heads/" + l.Branch }
func (l Landing) refLock() string { return l.ref() + ".lock" }

// layRefs writes what the branch will be, and what it was.
func (d *desk) layRefs() error {
	for name, commit := range map[string]git.OID{refNew: d.l.NewCommit, refOld: d.l.Head} {
		if err := d.create(name, []byte(string(commit)+"\n"), 0o600); err != nil {
			return err
		}
		if err := d.give(d.dir.fd(), name); err != nil {
			return err
		}
	}
	return nil
}

// give makes a file of ours the repository owner's, with the rights that the folder of its branches has.
func (s *site) give(in int, name string) error {
	var heads unix.Stat_t
	if err := s.common.stat("refs/heads", &heads); err != nil {
		return err
	}
	fd, err := beneath.Open(in, name, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchown(fd, int(s.UID), int(s.GID)); err != nil {
		return err
	}
	return unix.Fchmod(fd, heads.Mode&0o666|0o600)
}

// moveRef makes the branch name what the desk's file says, if it names from: ErrStale if not. It does what git
// does, in the same order and under the same lock, but with a lock that is known to be ours.
func (r *run) moveRef(ctx context.Context, file string, to, from git.OID, verb string) error {
	if err := r.lockRef(ctx, file); err != nil {
		return err
	}
	tip, err := r.tip(r.l.Branch)
	if err != nil {
		return err
	}
	if tip != from || from == r.l.Head && !r.asComputed(tip) {
		return r.stale()
	}

	message, was := "sallyport: "+verb+" "+string(r.l.Change), from
	if r.l.New {
		was = git.OID(strings.Repeat("0", len(from))) // git's word for a branch that was not there
	}
	if err := r.ops.Do("ref:log", func() error { return r.logRef(was, to, message) }); err != nil {
		return fmt.Errorf("write the reflog of %s: %w", r.l.Branch, err)
	}
	if err := r.ops.Do("ref:update", r.renameRef); err != nil {
		return fmt.Errorf("move %s to %.12s: %w", r.l.Branch, to, err)
	}
	return nil
}

// asComputed reports whether the branch, whose commit is tip, is as it was when the landing was computed: also in not being there.
func (d *desk) asComputed(tip git.OID) bool {
	return tip == d.l.Head && (!d.l.New || d.absent(d.l.Branch))
}

// stale says that a person has committed since the landing was computed.
func (d *desk) stale() error {
	return problem.Case(ErrStale, d.command("log "+inert.Path(d.l.Branch)), "the branch %s got a new commit while the landing was under way", d.l.Branch)
}

// lockRef takes git's own lock on the branch, which says at every instant what it is for.
func (r *run) lockRef(ctx context.Context, file string) error {
	if err := r.unlockRef(); err != nil { // of an earlier try, in the other direction
		return err
	}
	return r.takeLock(ctx, "ref:lock", file, r.l.refLock())
}

// takeLock takes a lock of git's: a hard link to a file of the desk, which a recovery knows by its inode.
func (r *run) takeLock(ctx context.Context, op, file, lock string) error {
	took, err := poll(ctx, r.wait(waitForGit), func() (bool, error) {
		err := r.ops.Do(op, func() error {
			fd, name, err := r.common.makeWay(lock, r.UID, r.GID, r.dir.fd())
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(r.dir.fd(), file, fd, name, 0)
		})
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOENT) { // a git removes folders that it finds empty
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("lock %s of %q: %w", r.l.Branch, r.Top, err)
	}
	if !took {
		return r.lockedOut(path.Join(r.CommonDir, lock))
	}
	return nil
}

// unlockRef removes the lock on the packed branches, and the branch's own, if they are ours.
func (d *desk) unlockRef() error {
	err := d.unlock("packed:unlock", d.common, packedLock, refPacked)
	if err == nil {
		err = d.unlock("ref:unlock", d.common, d.l.refLock(), refNew, refOld)
	}
	if err != nil {
		return fmt.Errorf("unlock %s of %q: %w", d.l.Branch, d.Top, err)
	}
	return nil
}

// renameRef makes the lock the branch. A folder that stands empty in the branch's place is git's to remove, and ours.
func (d *desk) renameRef() error {
	fd, name, err := d.common.parent(d.l.ref())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.Renameat(fd, name+".lock", fd, name)
	if errors.Is(err, unix.EISDIR) {
		if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil {
			return err
		}
		err = unix.Renameat(fd, name+".lock", fd, name)
	}
	return err
}

// logRef adds a line to the branch's reflog, and to HEAD's where the branch is checked out, if git would.
func (d *desk) logRef(from, to git.OID, message string) error {
	line := fmt.Sprintf("%s %s sallyport <sallyport@localhost> %d +0000\t%s\n", from, to, time.Now().Unix(), message)
	if err := d.appendLog(d.common, "logs/"+d.l.ref(), line); err != nil || !d.l.WorkTree {
		return err
	}
	return d.appendLog(d.gitDir, "logs/HEAD", line)
}

func (d *desk) appendLog(in *folder, p, line string) error {
	if !d.set["core.logallrefupdates"] && !in.has(p) {
		return nil
	}
	fd, name, err := in.makeWay(p, d.UID, d.GID, d.dir.fd())
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const flags = unix.O_WRONLY | unix.O_APPEND
	log, err := beneath.Open(fd, name, flags)
	if errors.Is(err, unix.EISDIR) { // of a branch that was called name/…, and is gone
		if err := unix.Unlinkat(fd, name, unix.AT_REMOVEDIR); err != nil {
			return err
		}
		err = unix.ENOENT
	}
	if errors.Is(err, unix.ENOENT) {
		if err := d.newLog(fd, name); err != nil {
			return err
		}
		log, err = beneath.Open(fd, name, flags)
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(log), name)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return fmt.Errorf("%q is no file: %w", path.Join(in.Name(), p), errors.Join(err, unix.EINVAL))
	}
	_, err = f.WriteString(line)
	return err
}

// newLog makes an empty reflog. It gets its place once it is whole: root's own, left by a crash, would be in the owner's way.
func (d *desk) newLog(fd int, name string) error {
	if err := remove(d.dir, "log"); err != nil { // of an earlier try
		return err
	}
	if err := d.create("log", nil, 0o600); err != nil {
		return err
	}
	if err := d.give(d.dir.fd(), "log"); err != nil {
		return err
	}
	return unix.Renameat2(d.dir.fd(), "log", fd, name, unix.RENAME_NOREPLACE)
}
