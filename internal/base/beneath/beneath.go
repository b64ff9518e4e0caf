// Package beneath opens what somebody else may be writing, and reads, measures and removes what is below it. It is the one
// place that calls openat2, and so the one place to audit.
//
// Everything is reached from an open folder, by a path below it. The kernel refuses, in the call that opens:
//
//   - a way out of the folder, by ".." or by an absolute path (EXDEV);
//   - a link anywhere on the way, the last name included (ELOOP);
//   - a magic link, such as those of /proc (ELOOP);
//   - a mount: nothing on another file system is part of the tree (EXDEV).
//
// So a name that is exchanged for a link while it is looked up opens nothing. An open waits for nobody: a FIFO has no far
// end to wait for, and a lease that is held ends in EAGAIN. No descriptor is inherited by a program that is started.
//
// Three functions allow more, and say why: [Real], [Top] and [Within].
package beneath

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

const (
	inside = unix.RESOLVE_BENEATH | real | unix.RESOLVE_NO_XDEV
	real   = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
)

// triesMax is how often an open that got EAGAIN is tried: a rename that raced with a lookup is over by then. Who holds a
// lease on a file could make it last 45 seconds, and is not waited for.
const triesMax = 100

// movedMax is how often an open that got EXDEV is tried: the kernel says so too where the folder was moved out of the tree in the middle of the
// lookup. The next try finds that it is not there. A way out or a mount is still one.
const movedMax = 5

// Open opens path below the folder dir. What opened may be anything but a link: look at it with fstat.
func Open(dir int, path string, flags int) (int, error) {
	return open(dir, path, unix.OpenHow{Flags: uint64(flags) &^ unix.O_NOFOLLOW, Resolve: inside})
}

// Look opens path below the folder dir to look at it and to name it, whatever it is: a link is itself.
func Look(dir int, path string) (int, error) {
	return open(dir, path, unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW, Resolve: inside})
}

// Create makes the file path below the folder dir, and opens it as flags say. It fails with EEXIST on whatever is there.
func Create(dir int, path string, flags int, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CREAT | unix.O_EXCL, Mode: uint64(mode), Resolve: inside}
	return open(dir, path, how)
}

// Real opens an absolute path on which there is no link. It passes mounts, because a person's repository may lie on
// any file system: the path was resolved, and shown, when they named it.
func Real(path string, flags int) (int, error) {
	fd, err := open(unix.AT_FDCWD, path, unix.OpenHow{Flags: uint64(flags), Resolve: real})
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", path, err)
	}
	return fd, nil
}

// Top opens a folder of the host's own. The way to it may lead through links, because an owner's home may; its last
// name may not be one. No agent can write any part of that way.
func Top(path string, flags int) (int, error) {
	fd, err := unix.Open(path, flags|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", path, err)
	}
	return fd, nil
}

// Within opens path as a program finds it whose root is the folder dir: links are followed, and neither they nor ".." lead out of dir. It
// is for a whole file system that is looked at from outside: what it calls /etc is its own.
func Within(dir int, path string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	return open(dir, path, how)
}

func open(dir int, path string, how unix.OpenHow) (int, error) {
	how.Flags |= unix.O_CLOEXEC
	if how.Flags&unix.O_PATH == 0 {
		how.Flags |= unix.O_NONBLOCK
	}

	for tries, moved := 1, 1; ; {
		fd, err := unix.Openat2(dir, path, &how)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN && tries < triesMax:
			tries++
		case err == unix.EXDEV && moved < movedMax:
			moved++
		default:
			return fd, err
		}
	}
}

// Names calls each for the entries of an open folder, in no order, some hundred at a time. It ends with each's error.
func Names(fd int, each func(name string) error) error {
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil { // somebody may have read from it
		return err
	}
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if err := each(name); err != nil {
				return err
			}
		}
	}
}

// Link returns the target of the link name in the folder dir, or of the link that dir is if name is "".
func Link(dir int, name string) (string, error) {
	target := make([]byte, unix.PathMax) // the longest has one byte less
	n, err := unix.Readlinkat(dir, name, target)
	if err != nil {
		return "", err
	}
	return string(target[:n]), nil
}
