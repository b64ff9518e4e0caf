package beneath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Folder opens the folder name in dir for reading. One that its owner closed is
// opened by its descriptor: restore, which must be called, puts its mode back.
func Folder(dir int, name string) (fd int, restore func(), err error) {
	fd, err = Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
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
	fd, err = Open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		restore()
		return -1, nil, err
	}
	return fd, restore, nil
}

// TopFolder is Top for reading. A folder that its owner closed is opened as Folder opens it.
func TopFolder(path string) (fd int, restore func(), err error) {
	fd, err = Top(path, unix.O_RDONLY)
	if err == nil {
		if unix.Faccessat(fd, ".", unix.X_OK, 0) == nil {
			return fd, func() {}, nil
		}
		unix.Close(fd)
	} else if !errors.Is(err, unix.EACCES) {
		return -1, nil, err
	}
	parent, err := Top(filepath.Dir(path), unix.O_PATH)
	if err != nil {
		return -1, nil, err
	}
	defer unix.Close(parent)
	return Folder(parent, filepath.Base(path))
}

// unlock adds bits to the mode of name in dir by its descriptor, and returns what takes them away again, unless its owner has given it
// another mode meanwhile.
func unlock(dir int, name string, bits uint32) (restore func(), err error) {
	fd, err := Look(dir, name)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	proc := "/proc/self/fd/" + strconv.Itoa(fd)
	was := st.Mode & 0o7777
	if err := unix.Chmod(proc, was|bits); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return func() {
		defer unix.Close(fd)
		if err := unix.Fstat(fd, &st); err == nil && st.Mode&0o7777 == was|bits {
			_ = unix.Chmod(proc, was)
		}
	}, nil
}

// File opens a regular file below top for reading, once, and returns its size.
// Folders and files that their owner closed are opened for as long as that takes.
func File(top int, path string) (*os.File, int64, error) {
	fd, err := Open(top, path, unix.O_RDONLY)
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
		next, restore, err := Folder(dir, name)
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
	fd, err := Open(dir, name, unix.O_RDONLY)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	restore, err := unlock(dir, name, 0o400)
	if err != nil {
		return -1, err
	}
	defer restore()
	return Open(dir, name, unix.O_RDONLY)
}
