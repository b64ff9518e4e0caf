package layer

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
	"sallyport/internal/port/sandbox"
)

func closeFD(fd int) { _ = unix.Close(fd) } // it was read from, or is a folder

// moveAll moves files and links from an open folder to the same paths in a folder of the host's own.
func moveAll(from int, to string, paths []string) error {
	made := map[string]bool{}
	for _, p := range paths {
		if !PlainPath(p) {
			return fmt.Errorf("%q is no path of a tree", p)
		}
		folder := path.Dir(p)
		if !made[folder] {
			if err := os.MkdirAll(filepath.Join(to, folder), 0o755); err != nil {
				return err
			}
			made[folder] = true
		}
		if err := move(from, folder, path.Base(p), filepath.Join(to, folder)); err != nil {
			return fmt.Errorf("move %q: %w", p, err)
		}
	}
	return nil
}

func move(from int, folder, name, to string) error {
	dir, err := beneath.Open(from, folder, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer closeFD(dir)
	return unix.Renameat2(dir, name, unix.AT_FDCWD, filepath.Join(to, name), unix.RENAME_NOREPLACE)
}

// seal makes what commands wrote into a stock the host's own: every file is ours, none runs as somebody else, and what is neither
// file, folder nor link is gone, but for a whiteout, which hides what lies below.
func seal(stock string) error {
	top, err := beneath.Top(stock, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer closeFD(top)
	s := sealer{dated: time.Now().Add(aheadBy)}
	for _, name := range []string{"cache", "tree"} {
		if err := s.entry(top, name, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// aheadBy is how far ahead the entries are dated whose tool writes to the time of what it uses: a stock lives much shorter.
const aheadBy = 10 * 365 * 24 * time.Hour

type sealer struct{ dated time.Time }

// entry seals name in dir, which is at a path below the stock.
func (s sealer) entry(dir int, name, at string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG && kind != unix.S_IFLNK && !IsWhiteout(&st) {
		return unix.Unlinkat(dir, name, 0)
	}
	if us := ourselves(); os.Geteuid() == 0 && st.Uid != us.UID {
		if err := unix.Fchownat(dir, name, int(us.UID), int(us.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	at = path.Join(at, name)
	switch kind {
	case unix.S_IFREG:
		return s.file(dir, name, at, &st)
	case unix.S_IFDIR:
		return s.folder(dir, name, at, depth, &st)
	}
	return nil
}

func (s sealer) file(dir int, name, at string, st *unix.Stat_t) error {
	if st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		if err := unix.Fchmodat(dir, name, st.Mode&0o777, 0); err != nil { // no link: it was looked at, and nothing runs here
			return err
		}
	}
	if !slices.ContainsFunc(sandbox.TouchedCaches, func(c string) bool { return sandbox.Below("/"+at, "/cache/"+c) }) {
		return nil
	}
	t := unix.NsecToTimespec(s.dated.UnixNano())
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}

func (s sealer) folder(dir int, name, at string, depth int, st *unix.Stat_t) error {
	if depth > sandbox.FoldersMax+2 {
		return errors.New("folders are nested deeper than a sandbox may make them")
	}
	fd, restore, err := beneath.Folder(dir, name)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	err = beneath.Names(fd, func(name string) error { return s.entry(fd, name, at, depth+1) })
	restore()
	if err == nil && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		err = unix.Fchmod(fd, st.Mode&0o1777)
	}
	return err
}
