package image_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/image"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func of(inputs string, at time.Time) image.Image { return image.Image{Inputs: inputs, Built: at} }

// built is what a build has left: files with marks, a link out of it, and what is no file.
func built(t *testing.T, more string) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755),
		os.WriteFile(filepath.Join(root, "usr/bin/tool"), []byte("a tool"+more), 0o755),
		os.Chmod(filepath.Join(root, "usr/bin/tool"), 0o755|fs.ModeSetuid|fs.ModeSetgid),
		os.Mkdir(filepath.Join(root, "closed"), 0o700),
		os.WriteFile(filepath.Join(root, "closed/file"), nil, 0o000),
		os.Chmod(filepath.Join(root, "closed"), 0o000),
		os.Symlink("/etc/shadow", filepath.Join(root, "usr/out")),
		os.Symlink("usr/bin", filepath.Join(root, "bin")),
		unix.Mkfifo(filepath.Join(root, "usr/pipe"), 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWhatWasBuiltIsKeptByWhatIsInIt(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	before, err := os.Lstat("/etc/shadow")
	made, err2 := f.Put(t.Context(), built(t, ""), of("these", noon))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if made.Inputs != "these" || !made.Built.Equal(noon) || made.Bytes != 6 || made.Files != 8 {
		t.Errorf("it is %+v", made)
	}
	root := f.Root(made.Digest)
	tool, err := os.Lstat(filepath.Join(root, "usr/bin/tool"))
	if err != nil || tool.Mode() != 0o755 {
		t.Errorf("a program runs with the rights of another: %v, %v", tool.Mode(), err)
	}
	if _, err := os.Lstat(filepath.Join(root, "usr/pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a pipe is in it: %v", err)
	}
	if to, err := os.Readlink(filepath.Join(root, "usr/out")); err != nil || to != "/etc/shadow" {
		t.Errorf("a link leads to %q, %v", to, err)
	}
	after, err := os.Lstat("/etc/shadow")
	if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("what a link leads to was touched: %v", err)
	}
	if read, err := f.Read(made.Digest); err != nil || read != made {
		t.Errorf("it reads as %+v, %v", read, err)
	}

	again, err := f.Put(t.Context(), built(t, ""), of("others", noon.Add(time.Hour)))
	if err != nil || again.Digest != made.Digest {
		t.Errorf("the same is another image: %+v, %v", again, err)
	}
	if other, err := f.Put(t.Context(), built(t, "!"), of("more", noon.Add(time.Hour))); err != nil || other.Digest == made.Digest {
		t.Errorf("another is the same image: %+v, %v", other, err)
	}
	if all, err := f.List(); err != nil || len(all) != 2 {
		t.Errorf("there are %+v, %v", all, err)
	}
	for _, name := range []string{"these", "others"} {
		if is, err := f.Find(name); err != nil || is.Digest != made.Digest || !is.Built.Equal(noon) {
			t.Errorf("%s there is %+v, %v", name, is, err)
		}
	}
	if _, err := f.Find("nothing"); !errors.Is(err, image.ErrAbsent) {
		t.Errorf("of nothing there is one: %v", err)
	}
}

// TestOwnersOfABuildAreNoPartOfAnImage: another home gives its builds other uids.
func TestOwnersOfABuildAreNoPartOfAnImage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root gives files away")
	}
	f := image.In(t.TempDir(), disk.Ops{})
	root := built(t, "")
	for _, path := range []string{root, filepath.Join(root, "usr/bin/tool"), filepath.Join(root, "usr/out")} {
		if err := os.Lchown(path, 0x78000005, 0x78000006); err != nil {
			t.Fatal(err)
		}
	}
	made, err := f.Put(t.Context(), root, of("x", noon))
	same, err2 := f.Put(t.Context(), built(t, ""), of("x", noon))
	if err := errors.Join(err, err2); err != nil || made.Digest != same.Digest {
		t.Fatalf("%s and %s: %v", made.Digest, same.Digest, err)
	}
	for _, name := range []string{"", "usr/bin/tool", "usr/out"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(f.Root(made.Digest), name), &st); err != nil || st.Uid != 0 || st.Gid != 0 {
			t.Errorf("%q belongs to %d:%d, %v", name, st.Uid, st.Gid, err)
		}
	}
}

// TestALinkIsNoRoot: what a build leaves in the place of its result would be shown as the machine's own.
func TestALinkIsNoRoot(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	for name, make := range map[string]func(at string) error{
		"a link":  func(at string) error { return os.Symlink("/etc", at) },
		"a file":  func(at string) error { return os.WriteFile(at, nil, 0o644) },
		"nothing": func(string) error { return nil },
	} {
		at := filepath.Join(t.TempDir(), "root")
		if err := make(at); err != nil {
			t.Fatal(err)
		}
		if i, err := f.Put(t.Context(), at, of("x", noon)); !errors.Is(err, image.ErrNone) {
			t.Errorf("%s became %+v: %v", name, i, err)
		}
	}
	if all, err := f.List(); err != nil || len(all) > 0 {
		t.Errorf("there are %+v, %v", all, err)
	}
}

// TestWhatTakesTooLongToReadIsNoRoot: holes and names cost a build nothing, and reading them would hold up the host for hours.
func TestWhatTakesTooLongToReadIsNoRoot(t *testing.T) {
	for name, more := range map[string]func(in string) error{
		"a file of holes": func(in string) error {
			return errors.Join(os.WriteFile(in+"/big", nil, 0o644), os.Truncate(in+"/big", image.BytesMax+1))
		},
		"files that have too much together": func(in string) error {
			return errors.Join(os.WriteFile(in+"/a", []byte("a"), 0o644), os.WriteFile(in+"/b", nil, 0o644), os.Truncate(in+"/b", image.BytesMax))
		},
		"a path beyond what can be named": func(in string) error {
			at, err := unix.Open(in, unix.O_PATH|unix.O_DIRECTORY, 0)
			for range 20 {
				long := strings.Repeat("a", 250)
				err = errors.Join(err, unix.Mkdirat(at, long, 0o755))
				below, err2 := unix.Openat(at, long, unix.O_PATH|unix.O_DIRECTORY, 0)
				err = errors.Join(err, err2, unix.Close(at))
				at = below
			}
			return errors.Join(err, unix.Close(at))
		},
	} {
		f := image.In(t.TempDir(), disk.Ops{})
		root := built(t, "")
		if err := more(filepath.Join(root, "usr")); err != nil {
			t.Fatal(err)
		}
		if i, err := f.Put(t.Context(), root, of("x", noon)); !errors.Is(err, image.ErrNone) {
			t.Errorf("%s became %+v: %v", name, i, err)
		}
	}
}

// TestTheSameWithAnotherPathIsAnotherImage: what programs find by a name is part of what is approved.
func TestTheSameWithAnotherPathIsAnotherImage(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	usual, err := f.Put(t.Context(), built(t, ""), of("x", noon))
	with, err2 := f.Put(t.Context(), built(t, ""), image.Image{Inputs: "y", Built: noon, Path: "/opt/x/bin:/usr/bin"})
	if err := errors.Join(err, err2); err != nil || with.Digest == usual.Digest {
		t.Fatalf("%+v and %+v, %v", usual, with, err)
	}
	if other, err := f.Put(t.Context(), built(t, ""), image.Image{Inputs: "z", Built: noon, Path: "/tmp/evil:/usr/bin"}); err != nil || other.Digest == with.Digest {
		t.Errorf("by another path it is %+v, %v", other, err)
	}
	if read, err := f.Read(with.Digest); err != nil || read != with || read.Path != "/opt/x/bin:/usr/bin" {
		t.Errorf("it reads as %+v, %v", read, err)
	}
}

// ending is a context that ends once it has been asked a few times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestAReadingThatShallEndEndsInTheMiddle: a daemon that is told to stop reads no image to its end.
func TestAReadingThatShallEndEndsInTheMiddle(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	file, folders := filepath.Join(t.TempDir(), "root"), filepath.Join(t.TempDir(), "root")
	err := errors.Join(os.Mkdir(file, 0o755), os.WriteFile(file+"/a", nil, 0o644), os.Truncate(file+"/a", 1<<20), os.MkdirAll(folders+"/usr/bin", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for name, try := range map[string]struct {
		root string
		left int
	}{
		"of one file": {file, 3}, // its folder, the file, and the first part of that
		"of folders":  {folders, 1},
	} {
		ctx := &ending{t.Context(), try.left}
		if i, err := f.Put(ctx, try.root, of("x", noon)); !errors.Is(err, context.Canceled) || errors.Is(err, image.ErrNone) || ctx.left < -3 {
			t.Errorf("%s it became %+v: %v, and was asked %d times more", name, i, err, -ctx.left)
		}
	}
	if left, err := os.ReadDir(f.Dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

func TestAnImageIsNamedByADigestAlone(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	card := func(at, digest string) {
		t.Helper()
		at = filepath.Join(f.Dir, at)
		if err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(at+"/image.json", []byte(`{"digest": "`+digest+`"}`), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "..", "../releases", strings.Repeat("g", 64), strings.Repeat("a", 63)} {
		card(name, name)
		if _, err := f.Read(name); !errors.Is(err, image.ErrAbsent) {
			t.Errorf("%q: %v", name, err)
		}
	}
	one, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	if _, err := f.Read(one); !errors.Is(err, image.ErrAbsent) {
		t.Errorf("one that is not there: %v", err)
	}
	card(one, other)
	if i, err := f.Read(one); err == nil || errors.Is(err, image.ErrAbsent) {
		t.Errorf("a card that names another reads as %+v, %v", i, err)
	}
}

func TestImagesAreListedTheNewestFirst(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	var want []string
	for n, more := range []string{"", "!", "?", "."} {
		made, err := f.Put(t.Context(), built(t, more), of("x", noon.Add(time.Duration(n)*time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		want = append([]string{made.Digest}, want...)
	}
	all, err := f.List()
	if err != nil || len(all) != len(want) {
		t.Fatalf("there are %+v, %v", all, err)
	}
	for n, i := range all {
		if i.Digest != want[n] {
			t.Errorf("at %d is %.12s, not %.12s", n, i.Digest, want[n])
		}
	}
}

// TestWhereverPowerGoesAnImageIsWholeOrNotThere dies at each named operation of Put.
func TestWhereverPowerGoesAnImageIsWholeOrNotThere(t *testing.T) {
	home := ""
	put := func(ops disk.Ops) error {
		_, err := image.In(home, ops).Put(t.Context(), built(t, ""), of("x", noon))
		return err
	}
	var points []string
	home = t.TempDir()
	if err := put(disk.Ops{Around: func(op string, do func() error) error { points = append(points, op); return do() }}); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("power is gone")
	for n := range points {
		for _, done := range []bool{false, true} {
			home = t.TempDir()
			i := 0
			err := put(disk.Ops{Around: func(_ string, do func() error) error {
				i++
				switch {
				case i < n+1:
					return do()
				case i == n+1 && done:
					return errors.Join(do(), gone)
				}
				return gone
			}})
			if !errors.Is(err, gone) {
				t.Fatalf("at %s: %v", points[n], err)
			}
			f := image.In(home, disk.Ops{})
			all, err := f.List()
			if err != nil || len(all) > 1 {
				t.Fatalf("after %s there are %+v, %v", points[n], all, err)
			}
			if len(all) == 1 {
				if _, err := os.Stat(filepath.Join(f.Root(all[0].Digest), "usr/bin/tool")); err != nil {
					t.Errorf("after %s an image is half there: %v", points[n], err)
				}
			}
			if _, err := f.Put(t.Context(), built(t, ""), of("x", noon)); err != nil {
				t.Errorf("after %s none can be made: %v", points[n], err)
			}
		}
	}
}

func TestAnImageThatIsRemovedIsGone(t *testing.T) {
	f := image.In(t.TempDir(), disk.Ops{})
	one, err := f.Put(t.Context(), built(t, ""), of("1", noon))
	two, err2 := f.Put(t.Context(), built(t, "!"), of("2", noon))
	if err := errors.Join(err, err2, f.Remove(one.Digest)); err != nil {
		t.Fatal(err)
	}
	if all, err := f.List(); err != nil || len(all) != 1 || all[0].Digest != two.Digest {
		t.Errorf("there are %+v, %v", all, err)
	}
	if left, err := os.ReadDir(f.Dir); err != nil || len(left) != 1 {
		t.Errorf("it left %v, %v", left, err)
	}
}
