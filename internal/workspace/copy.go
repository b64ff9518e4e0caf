package workspace

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sallyport/internal/sandbox"
)

// copyTree copies a layer, which the host made and nobody changes, for a sandbox to own.
func copyTree(from, to string, owner sandbox.Owner, share bool) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return ownFolder(target, owner)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err != nil {
				return err
			}
			if err := os.Symlink(link, target); err != nil {
				return err
			}
		default:
			info, err := d.Info()
			if err != nil {
				return err
			}
			if err := copyOne(p, target, info.Mode().Perm(), share); err != nil {
				return err
			}
			if err := os.Chtimes(target, info.ModTime(), info.ModTime()); err != nil { // the index knows it
				return err
			}
		}
		return own(target, owner)
	})
}

// copyOne copies the bytes of a regular file of the host's own, sharing its blocks if asked to.
func copyOne(from, to string, mode fs.FileMode, share bool) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
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
