package beneath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/beneath"
)

func TestAFolderThatTookThePlaceOfAnotherStays(t *testing.T) {
	dir := t.TempDir()
	path, aside := filepath.Join(dir, "it"), filepath.Join(dir, "aside")
	for _, p := range []string{path, aside} {
		if err := os.Mkdir(p, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at, folder, err := beneath.PlaceOf(path)
	if err != nil || !folder {
		t.Fatal(folder, err)
	}
	if err := errors.Join(os.Rename(path, filepath.Join(dir, "moved")), os.Rename(aside, path)); err != nil {
		t.Fatal(err)
	}
	if err := at.Remove(); err == nil {
		t.Error("another folder was removed")
	}
	if err := at.Unlink(); err != nil {
		t.Error(err)
	}
	if _, folder, _ := beneath.PlaceOf(path); !folder {
		t.Error("what came in its place is gone")
	}
}

func TestALinkOnTheWayIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "mine", "it"), 0o700), os.Symlink("mine", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	at, _, err := beneath.PlaceOf(filepath.Join(dir, "link", "it"))
	if err != nil {
		t.Fatal(err)
	}
	if err := at.Remove(); err == nil {
		t.Error("it was removed through a link")
	}
	if _, err := os.Stat(filepath.Join(dir, "mine", "it")); err != nil {
		t.Error(err)
	}
}
