package landing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// refPacked is the file of a desk that becomes packed-refs without the branch.
const refPacked = "ref-packed"

const (
	packedRefs = "packed-refs"
	packedLock = "packed-refs.lock"
	packedMax  = 512 << 20 // of some millions of refs; a sparse file can claim any size
)

// takeBack makes the branch what it was before it landed. One that was not there goes.
func (r *run) takeBack(ctx context.Context) error {
	if !r.l.New {
		return r.moveRef(ctx, refOld, r.l.Head, r.l.NewCommit, "roll back")
	}
	if err := r.removeRef(ctx); err != nil {
		return fmt.Errorf("remove %s again: %w", r.l.Branch, err)
	}
	return nil
}

// removeRef removes the branch if it names the new commit: ErrStale if not. It does what git does, in the same order and under
// the same two locks, but with locks that are known to be ours. The branch goes last, so that a crash leaves one that can be
// taken back again.
func (r *run) removeRef(ctx context.Context) error {
	if err := r.lockRef(ctx, refOld); err != nil {
		return err
	}
	if err := r.lockPacked(ctx); err != nil {
		return err
	}
	tip, err := r.objects.Resolve(r.l.ref())
	if err != nil {
		return err
	}
	if tip != r.l.NewCommit {
		return r.stale()
	}

	if err := r.ops.Do("ref:unlog", func() error { return remove(r.common, "logs/"+r.l.ref()) }); err != nil {
		return err
	}
	if err := r.dropPacked(); err != nil {
		return fmt.Errorf("take it out of %s: %w", packedRefs, err)
	}
	if err := r.ops.Do("ref:remove", func() error { return remove(r.common, r.l.ref()) }); err != nil {
		return err
	}

	if err := r.unlockRef(); err != nil {
		return err
	}
	r.dropEmpty(r.l.ref(), "refs/heads")
	r.dropEmpty("logs/"+r.l.ref(), "logs/refs/heads")
	return nil
}

// lockPacked takes git's own lock on the packed branches. While it is held no git packs the branch.
func (r *run) lockPacked(ctx context.Context) error {
	err := r.ops.Do("packed:make", func() error {
		// One of an earlier try may be packed-refs by now: it is never written to again.
		if err := unix.Unlinkat(r.dir.fd(), refPacked, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		return r.create(refPacked, nil, 0o600)
	})
	if err != nil {
		return err
	}
	return r.takeLock(ctx, "packed:lock", refPacked, packedLock)
}

// dropPacked takes the branch out of the packed ones, if it is there.
func (d *desk) dropPacked() error {
	raw, was, err := d.packed()
	if err != nil {
		return err
	}
	rest, found := withoutRef(raw, d.l.ref())
	if !found {
		return nil
	}
	if err := d.ops.Do("packed:write", func() error { return d.writePacked(rest, was) }); err != nil {
		return err
	}
	return d.ops.Do("packed:swap", func() error {
		return unix.Renameat(d.common.fd(), packedLock, d.common.fd(), packedRefs)
	})
}

// packed reads the packed branches; nothing if there are none.
func (s *site) packed() (raw []byte, was unix.Stat_t, err error) {
	fd, err := s.common.open(packedRefs, unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		return nil, was, nil
	}
	if err != nil {
		return nil, was, err
	}
	f := os.NewFile(uintptr(fd), packedRefs)
	defer f.Close()
	if err := unix.Fstat(fd, &was); err != nil {
		return nil, was, err
	}
	if was.Mode&unix.S_IFMT != unix.S_IFREG || was.Size > packedMax {
		return nil, was, s.oddState(s.command("pack-refs --all"), "%q is no regular file of at most %d bytes", path.Join(s.CommonDir, packedRefs), packedMax)
	}
	raw, err = io.ReadAll(io.LimitReader(f, packedMax))
	return raw, was, err
}

// withoutRef is a file of packed refs without one of them, and without what it peels to.
func withoutRef(raw []byte, ref string) (rest []byte, found bool) {
	dropping := false
	for line := range bytes.Lines(raw) {
		if line[0] != '^' {
			_, name, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
			dropping = line[0] != '#' && name == ref
			found = found || dropping
		}
		if !dropping {
			rest = append(rest, line...)
		}
	}
	return rest, found
}

// writePacked fills the lock that is to become packed-refs, with the owner and the rights of the file that it replaces.
func (d *desk) writePacked(raw []byte, was unix.Stat_t) error {
	fd, err := beneath.Open(d.dir.fd(), refPacked, unix.O_WRONLY)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), refPacked)
	defer f.Close()
	if _, err := f.Write(raw); err != nil {
		return err
	}
	if err := unix.Fchown(fd, int(was.Uid), int(was.Gid)); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, was.Mode&0o777); err != nil {
		return err
	}
	return f.Sync()
}

// remove deletes a file below a folder; one that is not there is deleted already.
func remove(in *folder, p string) error {
	fd, name, err := in.parent(p)
	if err == nil {
		err = unix.Unlinkat(fd, name, 0)
		unix.Close(fd)
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EISDIR) {
		return nil
	}
	return err
}

// dropEmpty removes the folders above p, up to one that stays, as far as they are empty, as git does.
func (d *desk) dropEmpty(p, stays string) {
	for up := path.Dir(p); up != stays; up = path.Dir(up) {
		err := d.ops.Do("ref:tidy", func() error {
			fd, name, err := d.common.parent(up)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		})
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return
		}
	}
}
