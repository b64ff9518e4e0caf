package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/port/sandbox"
)

// restorer writes through the view. It holds no path longer than one name: every folder is
// opened from the one above it, so that names may be exchanged meanwhile and nothing outside
// is written. What comes of such a race is for the proof to tell.
type restorer struct {
	goal
	ops   disk.Ops
	top   int
	owner sandbox.Owner
}

// run takes away what shall not be, writes what shall, and last looks after the folders.
func (r *restorer) run(ctx context.Context) error {
	gone, writes, err := r.sort(ctx)
	if err != nil {
		return err
	}
	for _, p := range gone {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.remove(p); err != nil {
			return err
		}
	}
	blobs := make([]git.OID, len(writes))
	for i, p := range writes {
		blobs[i] = r.want[p].OID
	}
	i := 0
	err = r.host.Blobs(ctx, blobs, func(oid git.OID, _ int64, body io.Reader) error {
		p := writes[i]
		i++
		return r.ops.Do("restore:write", func() error { return r.write(p, r.want[p], body) })
	})
	if err != nil {
		return err
	}
	for _, p := range r.odd {
		if r.want[p].Mode != git.Folder {
			continue
		}
		err := r.ops.Do("restore:folder", func() error {
			return r.in(p, true, func(dir int, name string) error { return r.folder(dir, name) })
		})
		if err != nil {
			return err
		}
	}
	return r.prune(gone)
}

// in calls do with the open folder that p lies in and the last name of p. With make true the
// folders above p are made to be folders, open to their owner; otherwise do is not called if
// one is missing, and folders that are closed are opened for as long as do takes.
func (r *restorer) in(p string, make bool, do func(dir int, name string) error) error {
	dir := r.top
	parts := strings.Split(p, "/")
	for _, name := range parts[:len(parts)-1] {
		fd, restore := -1, func() {}
		err := error(nil)
		if make {
			if err = r.folder(dir, name); err == nil {
				fd, err = beneath.Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
			}
		} else if fd, restore, err = beneath.Folder(dir, name); noFolder(err) {
			return nil
		}
		if err != nil {
			return &os.PathError{Op: "open", Path: strconv.QuoteToASCII(p), Err: err}
		}
		defer restore()
		defer unix.Close(fd)
		dir = fd
	}
	if err := do(dir, parts[len(parts)-1]); err != nil {
		return &os.PathError{Op: "restore", Path: strconv.QuoteToASCII(p), Err: err}
	}
	return nil
}

// noFolder reports whether an error of openFolder says that none is there.
func noFolder(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// folder makes name in dir a folder of mode 0755 that the sandbox owns, whatever is there.
func (r *restorer) folder(dir int, name string) error {
	fd, err := openRight(dir, name)
	if noFolder(err) {
		if err := beneath.Remove(dir, name); err != nil {
			return err
		}
		if err := unix.Mkdirat(dir, name, 0o755); err != nil {
			return err
		}
		fd, err = openRight(dir, name)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid == r.owner.UID || os.Geteuid() != 0 {
		return err
	}
	return unix.Fchown(fd, int(r.owner.UID), int(r.owner.GID)) // made just now, or by a restore that a crash ended
}

// openRight opens a folder and sees to it that its mode is 0755.
func openRight(dir int, name string) (int, error) {
	named, err := beneath.Open(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(named)
	return reopenRight(named)
}

// reopenRight opens for reading a folder that is open in whatever way, by that descriptor
// alone: the name "." would not do in a folder that its owner closed.
func reopenRight(named int) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(named, &st); err != nil {
		return -1, err
	}
	if st.Mode&0o7777 != 0o755 {
		if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(named), 0o755); err != nil {
			return -1, err
		}
	}
	return beneath.Open(named, ".", unix.O_RDONLY|unix.O_DIRECTORY)
}

// sort parts the paths into those that shall not be and those that are not what they shall
// be, to the last bit of their modes.
func (r *restorer) sort(ctx context.Context) (gone, writes []string, err error) {
	err = r.ops.Do("restore:compare", func() error { // closed folders are opened for it
		for _, p := range r.paths {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			e, right := r.file(p), false
			if e.Absent() {
				gone = append(gone, p)
				continue
			}
			// What was not found is as in the base, which is other.
			if f, found := r.found[p]; found && f.Mode == e.Mode {
				err := r.in(p, false, func(dir int, name string) (err error) {
					right, err = isRight(dir, name, e)
					return err
				})
				if err != nil {
					return err
				}
			}
			if !right {
				writes = append(writes, p)
			}
		}
		return nil
	})
	return gone, writes, err
}

// isRight reports whether name in dir is exactly e, under one name. One that cannot be read is not.
func isRight(dir int, name string, e git.Entry) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, nil
	}
	switch {
	case st.Nlink != 1:
		return false, nil
	case e.Mode == git.Symlink && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		target, err := beneath.Link(dir, name)
		if err != nil {
			return false, nil
		}
		oid, err := git.HashBlob(e.OID.Format(), int64(len(target)), strings.NewReader(target))
		return oid == e.OID, err
	case st.Mode != unix.S_IFREG|modeOf(e.Mode):
		return false, nil
	}
	f, size, err := beneath.File(dir, name)
	if err != nil {
		return false, nil
	}
	defer f.Close()
	oid, err := git.HashBlob(e.OID.Format(), size, f)
	if err != nil {
		return false, nil // somebody writes to it
	}
	return oid == e.OID, nil
}

// modeOf is the mode on disk of a regular file of a tree.
func modeOf(m git.Mode) uint32 {
	if m == git.Executable {
		return 0o755
	}
	return 0o644
}

// tempPrefix begins the name of what is written before it is renamed into place.
const tempPrefix = ".sallyport-restore-"

// tempName has the same length for every name, and is the same when a crash has come between.
func tempName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return tempPrefix + hex.EncodeToString(sum[:8])
}

func isTemp(p string) bool { return strings.HasPrefix(path.Base(p), tempPrefix) }

// write puts a file or link at p: beside it first, then by one rename.
func (r *restorer) write(p string, e git.Entry, body io.Reader) error {
	return r.in(p, true, func(dir int, name string) error {
		temp := tempName(name)
		if err := beneath.Remove(dir, temp); err != nil {
			return err
		}
		put := r.putFile
		if e.Mode == git.Symlink {
			put = r.putLink
		}
		if err := put(dir, temp, e, body); err != nil {
			return err
		}
		err := unix.Renameat(dir, temp, dir, name)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
			if err := beneath.Remove(dir, name); err != nil { // a folder, with all that is in it
				return err
			}
			err = unix.Renameat(dir, temp, dir, name)
		}
		return err
	})
}

func (r *restorer) putFile(dir int, name string, e git.Entry, body io.Reader) error {
	fd, err := beneath.Create(dir, name, unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "restored file")
	_, err = io.Copy(f, body)
	if err == nil && os.Geteuid() == 0 {
		err = unix.Fchown(fd, int(r.owner.UID), int(r.owner.GID))
	}
	if err == nil {
		err = unix.Fchmod(fd, modeOf(e.Mode))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func (r *restorer) putLink(dir int, name string, _ git.Entry, body io.Reader) error {
	target, err := io.ReadAll(io.LimitReader(body, unix.PathMax+1))
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(target), dir, name); err != nil || os.Geteuid() != 0 {
		return err
	}
	return unix.Fchownat(dir, name, int(r.owner.UID), int(r.owner.GID), unix.AT_SYMLINK_NOFOLLOW)
}

// remove takes away what is no folder at p. What is in a folder has paths of its own, unless
// the walk could not read it.
func (r *restorer) remove(p string) error {
	f, found := r.found[p]
	if found && f.Deleted() {
		return nil
	}
	whole := f.Fact.Unreadable != "" && r.want[p].Mode != git.Folder
	return r.ops.Do("restore:remove", func() error {
		return r.in(p, false, func(dir int, name string) error {
			if whole {
				return beneath.Remove(dir, name)
			}
			err := unix.Unlinkat(dir, name, 0)
			if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EISDIR) {
				return nil
			}
			return err
		})
	})
}

// prune removes the folders that are empty now and that the commit does not have, deepest first.
func (r *restorer) prune(gone []string) error {
	var folders []string
	seen := map[string]bool{}
	for _, p := range gone {
		for ; p != "." && !seen[p]; p = path.Dir(p) {
			seen[p] = true
			if r.want[p].Absent() {
				folders = append(folders, p)
			}
		}
	}
	slices.SortFunc(folders, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/")), cmp.Compare(a, b))
	})
	if len(folders) == 0 {
		return nil
	}
	return r.ops.Do("restore:prune", func() error {
		for _, p := range folders {
			err := r.in(p, false, func(dir int, name string) error {
				err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
				if noFolder(err) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
					return nil // gone, no folder, or something is left over in it
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
