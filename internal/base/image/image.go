// Package image keeps the root file systems that a home's sandboxes start from.
//
//	.state/images/<digest>/root         what a sandbox shows in the place of the machine's own programs
//	.state/images/<digest>/image.json   what is known of it
//
// An image is there whole or not at all, is never changed, and is named by what is in its root. What an agent's build has left there is
// data: no link in it is followed, and nothing in it can be executed with another's rights.
package image

import (
	"context"
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
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/whole"
)

// Image is one root file system; image.json is exactly this.
type Image struct {
	Digest string    `json:"digest"`         // SHA-256, in hex, over paths, modes and contents of its root, and over Path
	Inputs string    `json:"inputs"`         // names all that it was built of, the newest first, with a blank between
	Built  time.Time `json:"built"`          // UTC
	Files  int       `json:"files"`          // entries of all kinds
	Bytes  int64     `json:"bytes"`          // in its ordinary files
	Path   string    `json:"path,omitempty"` // its PATH; "" = the usual one
}

// Folder is where a home keeps its images. It is for one process.
type Folder struct {
	Dir string
	Ops disk.Ops
}

// In is the folder of a home. It need not be there.
func In(home string, ops disk.Ops) Folder {
	return Folder{Dir: filepath.Join(home, ".state", "images"), Ops: ops}
}

const (
	card       = "image.json"
	rootFolder = "root"
	comingName = ".new-"

	// HalfMade are the names of what a crash has left in the folder.
	HalfMade = comingName + "*"
)

// BytesMax is the most that the files of an image may have, each name of a file counted. Files with holes and files with many names take
// hardly any disk, and reading them takes as long as if they did.
const BytesMax = 16 << 30

// ErrNone says that something is no root file system that can be kept: a link, no folder, files beyond BytesMax, or paths that are too long.
var ErrNone = errors.New("what was built is no root file system")

// ErrAbsent says that a home has no such image.
var ErrAbsent = fmt.Errorf("no such image: %w", fs.ErrNotExist)

// Root is the folder with the root file system of an image.
func (f Folder) Root(digest string) string { return filepath.Join(f.Dir, digest, rootFolder) }

// Read returns what is known of an image. Errors: ErrAbsent.
func (f Folder) Read(digest string) (i Image, err error) {
	if len(digest) != 2*sha256.Size || strings.Trim(digest, "0123456789abcdef") != "" {
		return i, fmt.Errorf("%q: %w", digest, ErrAbsent)
	}
	raw, err := os.ReadFile(filepath.Join(f.Dir, digest, card))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%.12s: %w", digest, ErrAbsent)
	}
	if err == nil {
		err = json.Unmarshal(raw, &i)
	}
	if err == nil && i.Digest != digest {
		err = fmt.Errorf("%s of image %.12s names another", card, digest)
	}
	return i, err
}

// inputsMax is how many names of what it was built of an image keeps.
const inputsMax = 100

// BuiltFrom reports whether the image was built of something.
func (i Image) BuiltFrom(inputs string) bool {
	return slices.Contains(strings.Fields(i.Inputs), inputs)
}

// Find returns the newest image that was built of something. Errors: ErrAbsent.
func (f Folder) Find(inputs string) (Image, error) {
	all, err := f.List()
	for _, i := range all {
		if i.BuiltFrom(inputs) {
			return i, nil
		}
	}
	return Image{}, errors.Join(err, ErrAbsent)
}

// List returns the images, the newest first. One that cannot be read is an error, and the others are returned all the same.
func (f Folder) List() (all []Image, err error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), comingName) {
			continue
		}
		i, err := f.Read(e.Name())
		if err == nil {
			all = append(all, i)
		}
		errs = append(errs, err)
	}
	slices.SortFunc(all, func(a, b Image) int {
		if c := b.Built.Compare(a.Built); c != 0 {
			return c
		}
		return strings.Compare(a.Digest, b.Digest)
	})
	return all, errors.Join(errs...)
}

// Put takes a folder on the home's own disk over as the root of an image, of which i says Inputs, Built and Path: nobody may change it
// meanwhile. All in it becomes this user's, nothing keeps a set-id bit, and what is neither file nor folder nor link goes. An image that
// is there already stays as it is. An end of ctx ends the reading, and nothing is kept.
func (f Folder) Put(ctx context.Context, root string, i Image) (Image, error) {
	i = Image{Inputs: i.Inputs, Built: i.Built.UTC(), Path: i.Path}
	err := f.put(ctx, root, &i)
	if err != nil {
		return Image{}, fmt.Errorf("keep what was built as an image: %w", err)
	}
	return i, nil
}

func (f Folder) put(ctx context.Context, root string, i *Image) error {
	if err := whole.MakeFolder(f.Ops, f.Dir); err != nil {
		return err
	}
	err := f.Ops.Do("image:take", func() (err error) {
		*i, err = take(ctx, root, *i)
		return err
	})
	if err != nil {
		return err
	}
	if there, err := f.Read(i.Digest); err == nil {
		inputs := i.Inputs
		*i = there
		if there.BuiltFrom(inputs) {
			return nil
		}
		names := append([]string{inputs}, strings.Fields(there.Inputs)...) // of other inputs the same came
		i.Inputs = strings.Join(names[:min(len(names), inputsMax)], " ")
		return f.describe(filepath.Join(f.Dir, i.Digest), *i)
	}

	var coming string
	err = f.Ops.Do("image:begin", func() (err error) {
		coming, err = os.MkdirTemp(f.Dir, comingName)
		return err
	})
	if err != nil {
		return err
	}
	err = f.Ops.Do("image:place", func() error { return os.Rename(root, filepath.Join(coming, rootFolder)) })
	if err == nil {
		err = f.describe(coming, *i)
	}
	if err == nil {
		err = f.Ops.Do("image:put", func() error { return whole.Commit(coming, filepath.Join(f.Dir, i.Digest)) })
	}
	if err != nil {
		return errors.Join(err, whole.Remove(f.Ops, "image:discard", coming))
	}
	return nil
}

// describe writes what is known of an image beside its root.
func (f Folder) describe(dir string, i Image) error {
	raw, err := json.MarshalIndent(i, "", "\t")
	if err != nil {
		return err
	}
	return whole.SetFile(f.Ops, "image:describe", filepath.Join(dir, card), append(raw, '\n'))
}

// take makes all below root this user's, and returns what is there.
func take(ctx context.Context, root string, i Image) (Image, error) {
	if info, err := os.Lstat(root); err != nil || !info.IsDir() {
		return i, errors.Join(ErrNone, err)
	}
	all := sha256.New()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rest, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if err := os.Lchown(path, os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
		mode := info.Mode().Perm() // without marks
		switch kind := info.Mode().Type(); kind {
		case fs.ModeSymlink:
			to, err := os.Readlink(path)
			fmt.Fprintf(all, "link %q %q\n", rest, to)
			i.Files++
			return err
		case fs.ModeDir:
			mode |= 0o700 // or what is in it could not be shown
			fmt.Fprintf(all, "folder %q %o\n", rest, mode)
			i.Files++
			return os.Chmod(path, mode)
		case 0:
			if i.Bytes+info.Size() > BytesMax {
				return fmt.Errorf("%w: its files have more than %d GiB", ErrNone, BytesMax>>30)
			}
			sum, size, err := seal(ctx, path, mode)
			fmt.Fprintf(all, "file %q %o %d %s\n", rest, mode, size, sum)
			i.Files++
			i.Bytes += size
			return err
		default:
			return os.Remove(path) // a socket, a pipe, a device: nothing is behind it in another sandbox
		}
	})
	if i.Path != "" {
		fmt.Fprintf(all, "PATH %q\n", i.Path)
	}
	i.Digest = hex.EncodeToString(all.Sum(nil))
	if errors.Is(err, unix.ENAMETOOLONG) {
		err = fmt.Errorf("%w: a path in it is longer than the %d bytes that a program can name", ErrNone, unix.PathMax)
	}
	return i, err
}

// seal gives an ordinary file its mode, and returns what is in it.
func seal(ctx context.Context, path string, mode fs.FileMode) (sum string, size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	if err := file.Chmod(mode); err != nil {
		return "", 0, err
	}
	hash := sha256.New()
	size, err = io.Copy(hash, until{ctx, file})
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// until reads until its context ends.
type until struct {
	ctx  context.Context
	from io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.from.Read(p)
}

// Remove removes an image: it is never half there under its name.
func (f Folder) Remove(digest string) error {
	going := filepath.Join(f.Dir, comingName+"old-"+digest)
	err := whole.Remove(f.Ops, "image:discard", going) // what an earlier one left
	if err == nil {
		err = f.Ops.Do("image:retire", func() error { return os.Rename(filepath.Join(f.Dir, digest), going) })
	}
	if err != nil {
		return err
	}
	return whole.Remove(f.Ops, "image:discard", going)
}
