package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// What begins so is on its way in or out. Without a Put that holds the folder, a crash left it.
const (
	comingName = ".new-"
	goingName  = ".old-"
)

// ProgramMax is how large a program may be, in bytes. One with holes takes no disk until it is copied.
const ProgramMax = 1 << 30

// ErrNoProgram says that something is none: a link, a folder, what cannot be executed, or is larger than 1 GiB.
var ErrNoProgram = errors.New("it is no program")

// Put copies the programs that lie in the folder from, and returns the release that they are. r says what is known of
// them; Digest and Files are found. A release that is there, whole, is returned as it is: nothing changes. Errors: ErrNoProgram.
func (f Folder) Put(from string, r Release) (Release, error) {
	files, err := sumsOf(from)
	if err != nil {
		return Release{}, fmt.Errorf("keep the programs in %q as a release: %w", from, err)
	}
	return f.putThese(files, from, r)
}

// putThese is Put of programs whose sums are known.
func (f Folder) putThese(files map[string]string, from string, r Release) (Release, error) {
	held, err := f.hold(syscall.LOCK_SH)
	if err != nil {
		return Release{}, fmt.Errorf("keep the programs in %q as a release: %w", from, err)
	}
	defer held.Close()
	if there, err := f.whole(digest(files, r.Image)); err == nil { // so a home runs by it again though its disk is full
		return there, nil
	}
	var coming string
	err = f.Ops.Do("release:begin", func() (err error) {
		coming, err = os.MkdirTemp(f.Dir, comingName)
		return err
	})
	if err == nil {
		r, err = f.put(from, coming, r)
		err = errors.Join(err, f.discard(coming, aside(coming)))
	}
	if err != nil {
		return Release{}, fmt.Errorf("keep the programs in %q as a release: %w", from, err)
	}
	return r, nil
}

// put copies and hashes in one go; nothing is forced to the disk before it is known to be new.
func (f Folder) put(from, coming string, r Release) (Release, error) {
	r.Built, r.Files = r.Built.UTC(), map[string]string{}
	err := f.Ops.Do("release:copy", func() error {
		for _, name := range programs {
			sum, err := copyProgram(filepath.Join(from, name), filepath.Join(coming, name))
			if errors.Is(err, fs.ErrNotExist) && name != Program {
				continue
			}
			if err != nil {
				return err
			}
			r.Files[name] = sum
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	r.Digest = digest(r.Files, r.Image)
	err = f.Ops.Do("release:write", func() error { return writeThrough(coming, r) })
	if err == nil {
		err = f.Ops.Do("release:put", func() error { return f.place(coming, r.Digest) })
	}
	return r, err
}

// Install makes the programs that lie in the folder from the current release, if they are others than those that were installed last. Else the
// current one stays, as long as it is whole: it is what the home has come to since. r is that of Put.
func (f Folder) Install(from string, r Release) error {
	files, err := sumsOf(from)
	if err != nil {
		return fmt.Errorf("install the programs in %q: %w", from, err)
	}
	of := digest(files, "")
	if last, err := f.points(Installed); err == nil && last == of {
		if now, err := f.Current(); err == nil {
			if _, err := f.whole(now); err == nil {
				return nil
			}
		}
	}
	is, err := f.putThese(files, from, r)
	if err == nil {
		err = f.Use(is.Digest)
	}
	if err == nil {
		err = f.pointOnce(Installed, of)
	}
	return err
}

// sumsOf are the programs in a folder, with the sum of each.
func sumsOf(from string) (map[string]string, error) {
	files := map[string]string{}
	for _, name := range programs {
		sum, err := sumOf(filepath.Join(from, name))
		if errors.Is(err, fs.ErrNotExist) && name != Program {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = sum
	}
	return files, nil
}

// OpenProgram opens what could be a program of a release. No link is followed. Errors: ErrNoProgram.
func OpenProgram(path string) (*os.File, error) {
	file, err := os.OpenFile(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		err = fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 || info.Size() > ProgramMax) {
		err = fmt.Errorf("%w: %q is %s, of %d bytes", ErrNoProgram, path, info.Mode(), info.Size())
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func sumOf(path string) (string, error) {
	file, err := OpenProgram(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), err
}

// whole returns a release whose files are all as they were put there.
func (f Folder) whole(digest string) (Release, error) {
	program, r, err := f.Open(digest)
	if err != nil {
		return Release{}, err
	}
	return r, program.Close()
}

// copyProgram copies a program and returns the sum of the copy. Where the file system can, both share their blocks.
func copyProgram(from, to string) (sum string, err error) {
	in, err := OpenProgram(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return "", err
	}
	// A sandbox runs it as another user, to whom no folder above it is open: what holds it is shown to them alone.
	if err := out.Chmod(0o555); err != nil {
		return "", errors.Join(err, out.Close())
	}
	hash := sha256.New()
	const ficlone = 0x40049409
	if _, _, shares := syscall.Syscall(syscall.SYS_IOCTL, out.Fd(), ficlone, in.Fd()); shares == 0 {
		_, err = io.Copy(hash, out)
	} else {
		_, err = io.Copy(io.MultiWriter(out, hash), in)
	}
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, out.Close())
}

// writeThrough brings a copied release to the disk, with its card.
func writeThrough(coming string, r Release) error {
	raw, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	errs := []error{os.WriteFile(filepath.Join(coming, card), append(raw, '\n'), 0o400)}
	for name := range r.Files {
		errs = append(errs, persist(filepath.Join(coming, name)))
	}
	return errors.Join(append(errs, persist(filepath.Join(coming, card)), persist(coming))...)
}

// place gives a copied release its name. What lies there and is not this release, whole, makes room.
func (f Folder) place(coming, digest string) error {
	err := os.Rename(coming, f.path(digest))
	if err != nil {
		if _, wrong := f.whole(digest); wrong == nil { // another Put of the same was first
			return persist(f.Dir)
		}
		if os.Rename(f.path(digest), aside(coming)) == nil {
			err = os.Rename(coming, f.path(digest))
		}
	}
	return errors.Join(err, persist(f.Dir))
}

// aside is where place sets aside what lay in its way.
func aside(coming string) string { return coming + ".aside" }

// Prune removes all releases but the newest keep, the current and the previous one, and those to spare; and what a crash
// in Put or Prune has left, unless a Put is under way. It returns what it removed, the newest first.
func (f Folder) Prune(keep int, spare ...string) (removed []Release, err error) {
	past, err := f.Past(keep, spare...)
	if past == nil {
		return nil, err
	}
	errs := []error{err}
	for _, r := range past {
		gone, err := f.Remove(r.Digest)
		if gone {
			removed = append(removed, r)
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(append(errs, f.sweep())...)
}

// Past returns the releases that Prune removes, the newest first. One whose release.json has changed can never be started,
// and is among them. While it is not known which one runs there are none, and an error.
func (f Folder) Past(keep int, spare ...string) (past []Release, err error) {
	for _, named := range []func() (string, error){f.Current, f.Previous} {
		digest, err := named()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("nothing is removed while it is not known what runs: %w", err)
		}
		spare = append(spare, digest)
	}
	all, errs := f.list()
	errs = slices.DeleteFunc(errs, func(err error) bool {
		var wrong *Fault
		if !errors.Is(err, ErrChanged) || !errors.As(err, &wrong) {
			return false
		}
		all = append(all, Release{Digest: wrong.Digest})
		return true
	})
	past = []Release{}
	for n, r := range all {
		if (n >= keep || r.Files == nil) && !slices.Contains(spare, r.Digest) {
			past = append(past, r)
		}
	}
	return past, errors.Join(errs...)
}

// Remove removes one release; gone says that it has no name any more.
func (f Folder) Remove(digest string) (gone bool, err error) {
	going := f.path(goingName + digest)
	err = f.discard(going) // what an earlier one left
	if err == nil {
		err = f.Ops.Do("release:remove", func() error {
			return errors.Join(os.Rename(f.path(digest), going), persist(f.Dir))
		})
	}
	if err != nil {
		return false, err
	}
	return true, f.discard(going)
}

// sweep removes what a crash left.
func (f Folder) sweep() error {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var left []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), comingName) || strings.HasPrefix(e.Name(), goingName) {
			left = append(left, f.path(e.Name()))
		}
	}
	if err != nil || len(left) == 0 {
		return err
	}
	held, err := f.hold(syscall.LOCK_EX | syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) { // a Put is under way, and some of it may be its own
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close()
	return f.discard(left...)
}

// discard removes what has no name as a release any more; absence is success.
func (f Folder) discard(paths ...string) error {
	var errs []error
	for _, path := range paths {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		errs = append(errs, f.Ops.Do("release:discard", func() error { return os.RemoveAll(path) }))
	}
	return errors.Join(errs...)
}

// hold makes the folder if need be, and locks it until what it returns is closed: Put with others, Prune alone.
func (f Folder) hold(how int) (*os.File, error) {
	if _, err := os.Lstat(f.Dir); errors.Is(err, fs.ErrNotExist) {
		err := f.Ops.Do("release:folder", func() error {
			state := filepath.Dir(f.Dir)
			return errors.Join(os.MkdirAll(f.Dir, 0o700), persist(state), persist(filepath.Dir(state)))
		})
		if err != nil {
			return nil, err
		}
	}
	folder, err := os.OpenFile(f.Dir, syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(folder.Fd()), how)
	}
	if err != nil {
		folder.Close()
		return nil, &fs.PathError{Op: "lock", Path: f.Dir, Err: err}
	}
	return folder, nil
}
