package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// beneath is how everything an agent wrote is opened: below a folder, never through
// a link, never onto another file system, never waiting for the far end of a FIFO.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openAt opens path below the folder dir.
func openAt(dir int, path string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK, Resolve: beneath}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK
	}
	for {
		fd, err := unix.Openat2(dir, path, &how)
		if err == unix.EINTR || err == unix.EAGAIN { // EAGAIN: something was renamed during a BENEATH lookup
			continue
		}
		return fd, err
	}
}

// openReal opens a folder by its absolute path, following no link on the way.
func openReal(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openTop opens a folder of the host's own.
func openTop(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// openFolder opens the folder name in dir for reading. One that its owner closed is
// opened by its descriptor: restore, which must be called, puts its mode back.
func openFolder(dir int, name string) (fd int, restore func(), err error) {
	fd, err = openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		// Reading needs r, looking up what is inside needs x.
		if unix.Faccessat(fd, ".", unix.X_OK, 0) == nil {
			return fd, func() {}, nil
		}
		unix.Close(fd)
	} else if !errors.Is(err, unix.EACCES) {
		return -1, nil, err
	}
	restore, err = unlock(dir, name, 0o700)
	if err != nil {
		return -1, nil, err
	}
	fd, err = openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		restore()
		return -1, nil, err
	}
	return fd, restore, nil
}

// unlock adds bits to the mode of name in dir by its descriptor, and returns what takes them away again.
func unlock(dir int, name string, bits uint32) (restore func(), err error) {
	fd, err := openAt(dir, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	proc := "/proc/self/fd/" + strconv.Itoa(fd)
	if err := unix.Chmod(proc, st.Mode&0o7777|bits); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return func() {
		_ = unix.Chmod(proc, st.Mode&0o7777) // the owner may have changed it meanwhile, which is theirs to do
		unix.Close(fd)
	}, nil
}

// openFile opens a regular file below top for reading, once, and returns its size.
// Folders and files that their owner closed are opened for as long as that takes.
func openFile(top int, path string) (*os.File, int64, error) {
	fd, err := openAt(top, path, unix.O_RDONLY)
	if errors.Is(err, unix.EACCES) {
		fd, err = openClosed(top, path)
	}
	if err != nil {
		return nil, 0, &os.PathError{Op: "open", Path: strconv.QuoteToASCII(path), Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, 0, &os.PathError{Op: "stat", Path: strconv.QuoteToASCII(path), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, 0, fmt.Errorf("%q is not a regular file any more", path)
	}
	return os.NewFile(uintptr(fd), strconv.QuoteToASCII(path)), st.Size, nil
}

// openClosed walks to path component by component.
func openClosed(top int, path string) (int, error) {
	dir := top
	parts := strings.Split(path, "/")
	for _, name := range parts[:len(parts)-1] {
		next, restore, err := openFolder(dir, name)
		if dir != top {
			unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		defer restore()
		dir = next
	}
	if dir != top {
		defer unix.Close(dir)
	}
	name := parts[len(parts)-1]
	fd, err := openAt(dir, name, unix.O_RDONLY)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	restore, err := unlock(dir, name, 0o400)
	if err != nil {
		return -1, err
	}
	defer restore()
	return openAt(dir, name, unix.O_RDONLY)
}

// readLink returns the target of the link name in dir.
func readLink(dir int, name string) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// names calls each for the entries of an open folder, in no order, a thousand at a time.
func names(fd int, each func(name string) error) error {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(dup), "folder")
	defer f.Close()
	if _, err := f.Seek(0, io.SeekStart); err != nil { // it shares its place with fd
		return err
	}
	for {
		batch, err := f.Readdirnames(1024)
		for _, name := range batch {
			if err := each(name); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
