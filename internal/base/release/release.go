// Package release keeps the versions of the host's own programs in a home.
//
//	.state/releases/<digest>/{sallyport, sallyport-runner, sallyport-tool, release.json}
//	.state/releases/current, previous        links to one of them
//	.state/releases/installed                a link that names the programs that Install had last
//
// A release is there whole or not at all, is never changed, and is named by what is in it. Whoever starts one opens it
// with Open and executes the descriptor: what runs is what was hashed. A digest holds the programs and the name of the image
// that sandboxes start from; what else release.json says is told and decides nothing.
//
// No link is followed. Only Put and Prune wait for each other, so that nothing which runs a release, and nothing which
// goes back to one, can be held up here. Like package deadman this stands on the standard library alone.
package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/disk"
)

// Program is the one program that every release has.
const Program = "sallyport"

// programs are all that a release may be made of. Without the other two the host works as well: sandboxes start more
// slowly, and agents have no tool in their shell.
var programs = []string{Program, "sallyport-runner", "sallyport-tool"}

// Programs are all that a release may be made of, by name.
func Programs() []string { return slices.Clone(programs) }

// Installed is the link beside the releases that names the programs that Install had last. Without it the next count as others.
const Installed = "installed"

const (
	card    = "release.json"
	cardMax = 1 << 20 // bytes
)

// Release is one version of the programs; release.json is exactly this.
type Release struct {
	Digest string            `json:"digest"`           // SHA-256, in hex, over the sorted lines "name sum\n" of Files, and " image\n" of an Image
	Build  string            `json:"build"`            // as `sallyport version` says it
	Schema int               `json:"schema"`           // of the database, as these programs want it
	Source string            `json:"source,omitempty"` // commit that it was built from
	Image  string            `json:"image,omitempty"`  // digest of the image that its sandboxes start from; "" = this machine's own programs
	Built  time.Time         `json:"built"`            // UTC
	Files  map[string]string `json:"files"`            // name of a program -> SHA-256, in hex
}

// digest is what names a release of these files, whose sandboxes start from this image.
func digest(files map[string]string, image string) string {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(all, "%s %s\n", name, files[name])
	}
	if image != "" {
		fmt.Fprintf(all, " %s\n", image) // no program has such a name
	}
	return hex.EncodeToString(all.Sum(nil))
}

// IsDigest reports whether a word can name a release.
func IsDigest(word string) bool {
	return len(word) == 2*sha256.Size && strings.Trim(word, "0123456789abcdef") == ""
}

// What may be wrong with a release.
var (
	ErrAbsent     = fmt.Errorf("no such release: %w", fs.ErrNotExist)
	ErrChanged    = errors.New("changed since it was put there")
	ErrUnreadable = errors.New("cannot be read")
)

// Fault is what is wrong with a release, and with which of its files.
type Fault struct {
	Digest string
	File   string // "" = its folder
	Kind   error  // ErrAbsent, ErrChanged or ErrUnreadable; errors.Is finds it
	Why    string
}

func (f *Fault) Error() string {
	return strings.TrimRight(fmt.Sprintf("release %.12s %s", f.Digest, f.File), " ") + ": " + f.Kind.Error() + ": " + f.Why
}

func (f *Fault) Unwrap() error { return f.Kind }

// changed says what is not as it was put there.
type changed string

func (c changed) Error() string { return string(c) }

// fault sorts an error: what is not what was put there has changed, and what may be but cannot be seen is unreadable.
func fault(digest, file string, err error) error {
	kind, other := ErrUnreadable, changed("")
	switch absent := errors.Is(err, fs.ErrNotExist); {
	case absent && file == "":
		kind = ErrAbsent
	case absent, errors.As(err, &other), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		kind = ErrChanged
	}
	return &Fault{Digest: digest, File: file, Kind: kind, Why: err.Error()}
}

// Folder is where a home keeps its releases.
type Folder struct {
	Dir string
	Ops disk.Ops
}

// In is the folder of a home. It need not be there.
func In(home string, ops disk.Ops) Folder {
	return Folder{Dir: filepath.Join(home, ".state", "releases"), Ops: ops}
}

func (f Folder) path(name string) string { return filepath.Join(f.Dir, name) }

// Read returns what release.json says of a release. The programs themselves are looked at by Open.
func (f Folder) Read(digest string) (Release, error) {
	dir, r, err := f.read(digest)
	if err != nil {
		return Release{}, err
	}
	return r, dir.Close()
}

// read opens a release's folder as well, for all that follows.
func (f Folder) read(of string) (*os.File, Release, error) {
	var r Release
	if !IsDigest(of) {
		return nil, r, &Fault{Digest: of, Kind: ErrAbsent, Why: "that is no digest"}
	}
	dir, err := os.OpenFile(f.path(of), syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, r, fault(of, "", err)
	}
	raw, err := readCard(dir)
	if err == nil && json.Unmarshal(raw, &r) != nil {
		err = changed("it is no JSON of ours")
	}
	if err == nil && (r.Digest != of || digest(r.Files, r.Image) != of || r.Files[Program] == "") {
		err = changed("it names other programs")
	}
	if err != nil {
		dir.Close()
		return nil, Release{}, fault(of, card, err)
	}
	return dir, r, nil
}

func readCard(dir *os.File) ([]byte, error) {
	file, err := open(int(dir.Fd()), card)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, cardMax))
}

// open opens an ordinary file in a folder to read it. A link, and what is no file, count as changed.
func open(dir int, name string) (*os.File, error) {
	fd, err := syscall.Openat(dir, name, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	file := os.NewFile(uintptr(fd), name)
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = changed("it is no ordinary file")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Open hashes every file of a release against its digest and returns the very descriptor of sallyport that was hashed,
// at its beginning. Whoever starts it executes that descriptor. Errors: a *Fault, of each kind.
func (f Folder) Open(digest string) (program *os.File, r Release, err error) {
	dir, r, err := f.read(digest)
	if err != nil {
		return nil, Release{}, err
	}
	defer dir.Close()
	there, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, Release{}, fault(digest, "", err)
	}
	for _, name := range there { // what lies beside sallyport would be used by it
		if r.Files[name] == "" && name != card {
			return nil, Release{}, fault(digest, name, changed("it is not of this release"))
		}
	}
	for name, sum := range r.Files {
		file, err := verified(int(dir.Fd()), name, sum)
		if err != nil {
			if program != nil {
				program.Close()
			}
			return nil, Release{}, fault(digest, name, err)
		}
		if name == Program {
			program = file
		} else {
			file.Close()
		}
	}
	return program, r, nil
}

// verified opens a file whose content has this sum.
func verified(dir int, name, sum string) (*os.File, error) {
	file, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err = io.Copy(hash, file); err == nil && hex.EncodeToString(hash.Sum(nil)) != sum {
		err = changed(fmt.Sprintf("its sum is %x", hash.Sum(nil)))
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// List returns the releases, the newest first. One whose release.json is not as it was put there is an error, and the
// others are returned all the same.
func (f Folder) List() ([]Release, error) {
	all, errs := f.list()
	return all, errors.Join(errs...)
}

func (f Folder) list() (all []Release, errs []error) {
	digests, err := f.Find("")
	if err != nil {
		return nil, []error{err}
	}
	for _, digest := range digests {
		switch r, err := f.Read(digest); {
		case err == nil:
			all = append(all, r)
		case !errors.Is(err, ErrAbsent): // else it was just pruned
			errs = append(errs, err)
		}
	}
	slices.SortFunc(all, func(a, b Release) int {
		if c := b.Built.Compare(a.Built); c != 0 {
			return c
		}
		return strings.Compare(a.Digest, b.Digest)
	})
	return all, errs
}

// Find returns the digests that begin with part, in order, whatever has become of their releases.
func (f Folder) Find(part string) (digests []string, err error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if IsDigest(e.Name()) && strings.HasPrefix(e.Name(), part) {
			digests = append(digests, e.Name())
		}
	}
	return digests, nil
}

// Current returns the digest of the release that runs or is started next; an error wrapping fs.ErrNotExist if none was used.
func (f Folder) Current() (string, error) { return f.points("current") }

// Previous returns the digest of the one that was current, and kept, before; an error as Current's.
func (f Folder) Previous() (string, error) { return f.points("previous") }

// Moved reports whether the current release is of other programs than those that Install had last: the home was brought to them since.
// Where that cannot be told it was not.
func (f Folder) Moved() bool {
	last, err := f.points(Installed)
	if err != nil {
		return false
	}
	now, err := f.Current()
	if err != nil {
		return false
	}
	r, err := f.Read(now)
	return err == nil && digest(r.Files, "") != last
}

// Image returns the digest of the image that sandboxes start from by the current release; "" = the machine's own programs, or no release
// was used yet.
func (f Folder) Image() (string, error) {
	now, err := f.Current()
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r, err := f.Read(now)
	return r.Image, err
}

func (f Folder) points(link string) (string, error) {
	to, err := os.Readlink(f.path(link))
	if err == nil && !IsDigest(to) {
		err = fmt.Errorf("%q does not name a release", to)
	}
	if err != nil {
		return "", fmt.Errorf("read which release is %s: %w", link, err)
	}
	return to, nil
}

// Use makes a release the current one, and the one that was current the previous one. For the release that is current
// already it changes nothing. Wherever power goes, current names the old release or the new one; and until it names the
// new one, previous may name the old one as well. It is for one process at a time.
func (f Folder) Use(digest string) error {
	if _, err := f.Read(digest); err != nil {
		return fmt.Errorf("use another release: %w", err)
	}
	now, err := f.Current()
	switch {
	case err == nil && now == digest:
		return nil
	case err == nil:
		if err := f.point("previous", now); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return f.point("current", digest)
}

// Turn makes a release the current one, and leaves the previous one: for a trial, which may go back, and for the way back.
func (f Folder) Turn(digest string) error {
	if _, err := f.Read(digest); err != nil {
		return fmt.Errorf("use another release: %w", err)
	}
	return f.pointOnce("current", digest)
}

// Follow makes a release the previous one: the one after it is there to stay.
func (f Folder) Follow(digest string) error { return f.pointOnce("previous", digest) }

// pointOnce writes nothing where a link names the release already.
func (f Folder) pointOnce(link, digest string) error {
	if now, err := f.points(link); err == nil && now == digest {
		return nil
	}
	return f.point(link, digest)
}

// point lets a link name a release, durably.
func (f Folder) point(link, digest string) error {
	err := f.Ops.Do("release:"+link, func() error {
		coming := f.path("." + link + ".new")
		if err := os.Remove(coming); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return errors.Join(os.Symlink(digest, coming), os.Rename(coming, f.path(link)), persist(f.Dir))
	})
	if err != nil {
		return fmt.Errorf("make release %.12s the %s one: %w", digest, link, err)
	}
	return nil
}

// persist writes a file, or a folder's entries, through to the disk.
func persist(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
