package leftover_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/leftover"
)

func put(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if filepath.Ext(name) == ".d" {
			err = errors.Join(err, os.Mkdir(path, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(path, nil, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOnlyWhatHasSuchANameIsToldAndGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [dir]*") // a folder's name is no pattern
	put(t, dir, ".new-a.d", ".new-b", "c", "in/.new-d", "in/deep/.new-e")
	var did []string
	names := leftover.Names{Folder: dir, Patterns: []string{".new-*", "*/.new-*", "absent/*"}, Goes: leftover.InTime, Op: "sweep:it",
		Ops: disk.Ops{Around: func(op string, do func() error) error { did = append(did, op); return do() }}}
	items, err := names.Left(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, it := range items {
		told = append(told, it.What+" "+it.Path[len(dir)+1:])
		if it.Goes != leftover.InTime || it.Stays != "" || int(it.UID) != os.Geteuid() || it.At.IsZero() || it.Folder() != (it.What == "folder") {
			t.Errorf("%+v", it)
		}
	}
	if want := []string{"folder .new-a.d", "file .new-b", "file in/.new-d"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if len(did) > 0 {
		t.Errorf("telling did %q", did)
	}
	for _, it := range items {
		if gone, err := it.Remove(t.Context()); !gone || err != nil {
			t.Errorf("%s: %v, %v", it.Path, gone, err)
		}
	}
	if left, err := names.Left(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if !slices.Equal(did, []string{"sweep:it", "sweep:it", "sweep:it"}) {
		t.Errorf("did %q", did)
	}
	for _, name := range []string{"c", "in/deep/.new-e"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatHasComeInTheMeantimeStays(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.new", "b.new.d")
	items, err := leftover.Names{Folder: dir, Patterns: []string{"*.new", "*.new.d"}}.Left(context.Background())
	if err != nil || len(items) != 2 {
		t.Fatalf("%v, %v", items, err)
	}
	for _, name := range []string{"a.new", "b.new.d"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "old "+name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, dir, "a.new", "b.new.d")
	for _, it := range items {
		_, _ = it.Remove(t.Context())
		if _, err := os.Lstat(it.Path); err != nil {
			t.Error(err)
		}
	}
}
