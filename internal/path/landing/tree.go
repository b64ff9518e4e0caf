package landing

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/base/git"
)

// folder is an open directory below which paths are looked at and moved. Every path is reached
// from its descriptor, beneath it, through no link and into no other file system.
type folder struct {
	*os.File
	format   string // object format, for ids of what is found
	fileMode bool   // executable bits mean something here (core.fileMode)
}

// found is what a path holds. Entry is zero unless it is a file or a link.
type found struct {
	git.Entry
	Exists bool
	Stat   unix.Stat_t
}

// is reports whether f holds exactly want; a folder or a special file is no entry.
func (f found) is(want git.Entry, fileMode bool) bool {
	if want.Absent() {
		return !f.Exists
	}
	if f.OID != want.OID {
		return false
	}
	return f.Mode == want.Mode || !fileMode && regular(f.Mode) && regular(want.Mode)
}

func (f found) isFolder() bool { return f.Exists && f.Stat.Mode&unix.S_IFMT == unix.S_IFDIR }

func regular(m git.Mode) bool { return m == git.File || m == git.Executable }

// inWay is a reason why a path cannot be reached, for a person.
type inWay struct {
	path string
	why  string
}

func (w *inWay) Error() string { return fmt.Sprintf("%q %s", w.path, w.why) }

// errChanging says that a file changed while it was read.
var errChanging = errors.New("is being written to")

// openFolder opens an absolute path without following a link anywhere on the way: it was real
// when the change was requested. If we are root it must belong to one of owners, or to root
// where no owner below could have put it there.
func openFolder(abs, format string, owners ...uint32) (*folder, error) {
	fd, err := beneath.Real(abs, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%w: there is a symbolic link on the way, which was not there before", err)
	}
	if err != nil {
		return nil, err
	}
	f := &folder{File: os.NewFile(uintptr(fd), abs), format: format, fileMode: true}
	if os.Geteuid() != 0 {
		return f, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("open %q: %w", abs, err)
	}
	for _, uid := range owners {
		if st.Uid == uid || st.Uid == 0 {
			return f, nil
		}
	}
	f.Close()
	return nil, fmt.Errorf("open %q: it belongs to uid %d: %w", abs, st.Uid, unix.EPERM)
}

func (f *folder) fd() int { return int(f.Fd()) }

// open opens a path below f; a link is not followed, and not opened.
func (f *folder) open(p string, flags int) (int, error) { return beneath.Open(f.fd(), p, flags) }

// parent opens the folder that p lies in and returns p's last name.
// Errors: fs.ErrNotExist if there is no such folder; *inWay if a link, a file or a mount is in the way.
func (f *folder) parent(p string) (fd int, name string, err error) {
	up, name := path.Split(p)
	up = path.Clean(up)
	fd, err = f.open(up, unix.O_PATH|unix.O_DIRECTORY)
	switch {
	case err == nil:
		return fd, name, nil
	case errors.Is(err, unix.ELOOP):
		return -1, "", &inWay{up, "is reached through a symbolic link"}
	case errors.Is(err, unix.EXDEV):
		return -1, "", &inWay{up, "is on another file system than the work tree"}
	case errors.Is(err, unix.ENOTDIR):
		return -1, "", &inWay{up, "is not a folder"}
	}
	return -1, "", fmt.Errorf("open folder %q: %w", up, err)
}

// look returns what is at p. A missing folder, or a file where a folder should be, means absence.
func (f *folder) look(p string) (found, error) {
	fd, name, err := f.parent(p)
	if errors.Is(err, unix.ENOENT) {
		return found{}, nil
	}
	var way *inWay
	if errors.As(err, &way) && way.why == "is not a folder" {
		return found{}, nil
	}
	if err != nil {
		return found{}, err
	}
	defer unix.Close(fd)
	return lookAt(fd, name, f.format)
}

// tick is longer than the clock of any file system takes to move on.
const tick = 10 * time.Millisecond

// freshStat is what git would remember of a file that holds exactly e: taken before and after its
// bytes were compared, and not within a tick of its last write, where a second write would not show.
// The zero Stat, which makes git compare for itself, if it holds something else.
func (f *folder) freshStat(p string, e git.Entry) git.Stat {
	is, err := f.look(p)
	if err != nil || !is.is(e, f.fileMode) {
		return git.Stat{}
	}
	if age := time.Since(time.Unix(is.Stat.Mtim.Unix())); age < tick {
		if age < 0 {
			return git.Stat{}
		}
		time.Sleep(tick - age)
		if is, err = f.look(p); err != nil || !is.is(e, f.fileMode) {
			return git.Stat{}
		}
	}
	s := is.Stat
	return git.Stat{
		CtimeSec: uint32(s.Ctim.Sec), CtimeNsec: uint32(s.Ctim.Nsec),
		MtimeSec: uint32(s.Mtim.Sec), MtimeNsec: uint32(s.Mtim.Nsec),
		Dev: uint32(s.Dev), Ino: uint32(s.Ino), UID: s.Uid, GID: s.Gid, Size: uint32(s.Size),
	}
}

// lookAt returns what name in an open folder holds, with the id of its bytes as they are.
func lookAt(fd int, name, format string) (found, error) {
	var f found
	err := unix.Fstatat(fd, name, &f.Stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return found{}, nil
	}
	if err != nil {
		return found{}, fmt.Errorf("look at %q: %w", name, err)
	}
	f.Exists = true
	switch f.Stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return readRegular(fd, name, format)
	case unix.S_IFLNK:
		target, err := beneath.Link(fd, name)
		if err != nil {
			return found{}, err
		}
		f.Mode = git.Symlink
		f.OID, err = git.HashBlob(format, int64(len(target)), strings.NewReader(target))
		return f, err
	}
	return f, nil
}

func readRegular(fd int, name, format string) (found, error) {
	file, err := beneath.Open(fd, name, unix.O_RDONLY)
	if err != nil {
		return found{}, fmt.Errorf("read %q: %w", name, err)
	}
	r := os.NewFile(uintptr(file), name)
	defer r.Close()
	f := found{Exists: true}
	if err := unix.Fstat(file, &f.Stat); err != nil {
		return found{}, fmt.Errorf("read %q: %w", name, err)
	}
	if f.Stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return found{}, fmt.Errorf("read %q: %w", name, errChanging)
	}
	f.Mode = git.File
	if f.Stat.Mode&0o100 != 0 {
		f.Mode = git.Executable
	}
	if f.OID, err = git.HashBlob(format, f.Stat.Size, r); err != nil {
		var errno unix.Errno
		if errors.As(err, &errno) {
			return found{}, fmt.Errorf("read %q: %w", name, err)
		}
		return found{}, fmt.Errorf("read %q: %w", name, errChanging)
	}
	var after unix.Stat_t
	if err := unix.Fstat(file, &after); err != nil {
		return found{}, fmt.Errorf("read %q: %w", name, err)
	}
	if after.Mtim != f.Stat.Mtim || after.Size != f.Stat.Size {
		return found{}, fmt.Errorf("read %q: %w", name, errChanging)
	}
	return f, nil
}

// names returns what an open folder below f holds.
func (f *folder) names(p string) ([]os.DirEntry, error) {
	fd, err := f.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", p, err)
	}
	dir := os.NewFile(uintptr(fd), p)
	defer dir.Close()
	return dir.ReadDir(-1)
}

// smallMax is how much of a file is read whole.
const smallMax = 64 << 10

// small reads a regular file of at most smallMax bytes below f; "" if there is none, or a folder.
func (f *folder) small(p string) (string, error) {
	fd, err := f.open(p, unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %q: %w", path.Join(f.Name(), p), err)
	}
	r := os.NewFile(uintptr(fd), p)
	defer r.Close()
	st, err := r.Stat()
	if err == nil && st.IsDir() {
		return "", nil
	}
	if err != nil || !st.Mode().IsRegular() {
		return "", fmt.Errorf("read %q: it is no file", path.Join(f.Name(), p))
	}
	raw, err := io.ReadAll(io.LimitReader(r, smallMax))
	return string(raw), err
}

// isFolder reports whether p below f is a folder.
func (f *folder) isFolder(p string) bool {
	fd, err := f.open(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// has reports whether anything is at p below f.
func (f *folder) has(p string) bool {
	fd, err := beneath.Look(f.fd(), p)
	if err != nil {
		return !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR)
	}
	unix.Close(fd)
	return true
}

// stat looks at p below f, not through a last link.
func (f *folder) stat(p string, st *unix.Stat_t) error {
	fd, err := beneath.Look(f.fd(), p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, st)
}

// unlink deletes a file below f.
func (f *folder) unlink(p string) error {
	fd, name, err := f.parent(p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Unlinkat(fd, name, 0)
}

// makeWay is parent for something that is to be made at p: folders that are missing on the way are made, each with the
// rights of the one above it, and belong to the repository's owner. Each is made in a folder of ours, and gets its place once it is
// whole: root's own, left by a crash, would be in the owner's way. What lies below a folder of ours is made where it stands; ours is -1 then.
func (f *folder) makeWay(p string, uid, gid uint32, ours int) (fd int, name string, err error) {
	for _, up := range folders([]string{p}) {
		if f.has(up) {
			continue
		}
		at, dir, err := f.parent(up)
		if err != nil {
			return -1, "", err
		}
		err = makeFolder(at, dir, uid, gid, ours)
		unix.Close(at)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, "", fmt.Errorf("make folder %q: %w", up, err)
		}
	}
	return f.parent(p)
}

// coming is a folder's name until it is whole.
const coming = "coming"

func makeFolder(at int, name string, uid, gid uint32, ours int) (err error) {
	var above unix.Stat_t
	if err := unix.Fstat(at, &above); err != nil {
		return err
	}
	if above.Mode&unix.S_ISGID != 0 {
		gid = above.Gid
	}
	if ours == -1 {
		return makeWhole(at, name, uid, gid, above.Mode)
	}
	if err := rmdir(ours, coming); err != nil { // of an earlier try
		return err
	}
	if err := makeWhole(ours, coming, uid, gid, above.Mode); err != nil {
		return err
	}
	if err := unix.Renameat2(ours, coming, at, name, unix.RENAME_NOREPLACE); err != nil {
		return errors.Join(err, rmdir(ours, coming))
	}
	return nil
}

func makeWhole(at int, name string, uid, gid, mode uint32) error {
	if err := unix.Mkdirat(at, name, 0o700); err != nil {
		return err
	}
	fd, err := beneath.Open(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchown(fd, int(uid), int(gid)); err != nil {
		return err
	}
	return unix.Fchmod(fd, mode&0o7777)
}
