package layer

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/port/sandbox"
)

// CopyBase copies what layers show together, which the host made and nobody changes, for a sandbox to own.
func CopyBase(layers []string, to string, owner sandbox.Owner, share bool) error {
	base, err := OpenBase(layers)
	if err != nil {
		return err
	}
	defer base.Close()
	return copyFolder(base, to, owner, share)
}

func copyFolder(from *Base, to string, owner sandbox.Owner, share bool) error {
	if err := OwnFolder(to, owner); err != nil {
		return err
	}
	return from.Names(func(name string) error {
		target := filepath.Join(to, name)
		var st unix.Stat_t
		dir, err := from.Find(name, &st)
		if err != nil {
			return err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			inner, err := from.Folder(name)
			if err != nil {
				return err
			}
			defer inner.Close()
			return copyFolder(inner, target, owner, share)
		case unix.S_IFLNK:
			link, err := beneath.Link(dir, name)
			if err != nil {
				return err
			}
			if err := os.Symlink(link, target); err != nil {
				return err
			}
		default:
			src, _, err := beneath.File(dir, name)
			if err != nil {
				return err
			}
			defer src.Close()
			if err := copyTo(src, target, fs.FileMode(st.Mode).Perm(), share); err != nil {
				return err
			}
		}
		if err := own(target, owner); err != nil {
			return err
		}
		// The index knows when each was written, links too.
		return unix.UtimesNanoAt(unix.AT_FDCWD, target, []unix.Timespec{st.Mtim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// CopyIndex copies an index of git's, sharing its blocks where that can be.
func CopyIndex(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return copyTo(src, to, 0o644, true)
}

func copyTo(src *os.File, to string, mode fs.FileMode, share bool) error {
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if !share || unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) != nil {
		_, err = io.Copy(dst, src)
	}
	if err == nil {
		err = dst.Chmod(mode) // whatever the umask
	}
	if closed := dst.Close(); err == nil {
		err = closed
	}
	return err
}
