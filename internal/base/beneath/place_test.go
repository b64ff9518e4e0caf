package beneath_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// look returns what is at a path.
func look(t *testing.T, path string) beneath.Place {
	t.Helper()
	at, _, err := beneath.PlaceOf(path)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestAPlaceIsWhatIsThereAndWhenItChanged(t *testing.T) {
	tree, _ := world(t)
	for path, folder := range map[string]bool{"folder": true, "file": false, "to-folder": false, "nowhere": false} {
		at, is, err := beneath.PlaceOf(filepath.Join(tree, path))
		if err != nil || is != folder || at.Ino == 0 || at.Path != filepath.Join(tree, path) {
			t.Errorf("%s: %+v, a folder %v, %v", path, at, is, err)
		}
	}
	for _, absent := range []string{"missing", "file/below"} {
		if at, is, err := beneath.PlaceOf(filepath.Join(tree, absent)); err != nil || is || at != (beneath.Place{}) {
			t.Errorf("%s: %+v, %v, %v", absent, at, is, err)
		}
	}
	if _, _, err := beneath.PlaceOf(filepath.Join(tree, strings.Repeat("x", 300))); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("what cannot be looked at: %v", err)
	}

	path, began := filepath.Join(tree, "file"), time.Now().Add(-time.Minute)
	for _, dated := range []time.Time{began.Add(-time.Hour), began.Add(24 * time.Hour)} {
		if err := os.Chtimes(path, dated, dated); err != nil {
			t.Fatal(err)
		}
		if at := look(t, path).At; at.Before(began) || dated.After(began) && at.Unix() != dated.Unix() {
			t.Errorf("dated %s it was changed at %s, and it was touched after %s", dated, at, began)
		}
	}
}

func TestAFolderThatIsStillTheOneGoesWithAllThatIsInIt(t *testing.T) {
	tree, _ := world(t)
	path := filepath.Join(tree, "folder")
	at := look(t, path)
	leavesNothingOpen(t, func() {
		for range 2 { // gone is gone
			if err := at.Remove(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, name := range []string{"folder", ".new-folder"} {
		if _, err := os.Lstat(filepath.Join(tree, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}

	at.Path = filepath.Join(tree, "gone/folder")
	if err := errors.Join(at.Remove(), at.Unlink()); err != nil {
		t.Errorf("in a folder that is gone: %v", err)
	}
	for _, in := range []string{"to-folder", "file"} { // what cannot be opened is an error, and nobody's success
		at.Path = filepath.Join(tree, in, "x")
		if at.Remove() == nil || at.Unlink() == nil {
			t.Errorf("in %s it is said to be removed", in)
		}
	}
}

func TestTheRestOfAnEarlierRemovalIsInTheWay(t *testing.T) {
	tree, _ := world(t)
	planted(t, tree, map[string]string{".new-folder/kept": "x"})
	at := look(t, filepath.Join(tree, "folder"))
	if err := at.Remove(); !errors.Is(err, unix.EEXIST) {
		t.Errorf("%v", err)
	}
	for _, name := range []string{"folder/file", ".new-folder/kept"} {
		if _, err := os.Stat(filepath.Join(tree, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatWasLookedAtIsUnlinkedAndNothingElse(t *testing.T) {
	tree, _ := world(t)
	if err := os.Mkdir(filepath.Join(tree, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	leavesNothingOpen(t, func() {
		for _, name := range []string{"file", "to-outside", "empty"} {
			path := filepath.Join(tree, name)
			at := look(t, path)
			for _, other := range []beneath.Place{{Path: path, Dev: at.Dev + 1, Ino: at.Ino}, {Path: path, Dev: at.Dev, Ino: at.Ino + 1}} {
				if err := other.Unlink(); err != nil || look(t, path) != at {
					t.Errorf("%s is not %+v, %v", name, other, err)
				}
			}
			if err := errors.Join(at.Unlink(), at.Unlink()); err != nil || look(t, path) != (beneath.Place{}) {
				t.Errorf("%s is left, %v", name, err)
			}
		}
		if err := look(t, filepath.Join(tree, "folder")).Unlink(); !errors.Is(err, unix.ENOTEMPTY) {
			t.Errorf("a folder with something in it: %v", err)
		}
	})
}

func TestFilesOfANameAreFoundBelowAFolderAndNotBeyondIt(t *testing.T) {
	tree, _ := world(t)
	planted(t, tree, map[string]string{"x.lock": "", "a/b/y.lock": "", "a/other": "", "outside.lock/z.lock": "", "../outside/w.lock": ""})
	if err := errors.Join(os.Symlink("x.lock", filepath.Join(tree, "link.lock")), os.Chmod(filepath.Join(tree, "folder"), 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(tree, "folder"), 0o755) })
	isLock := func(name string) bool { return strings.HasSuffix(name, ".lock") }
	asOrdinaryUser(t, tree, func() {
		leavesNothingOpen(t, func() {
			found, err := beneath.Find(tree, isLock)
			var names []string
			for _, at := range found {
				rel, _ := filepath.Rel(tree, at.Path)
				names = append(names, rel)
				if at.Ino == 0 || at.Mode&unix.S_IFMT != unix.S_IFREG {
					t.Errorf("%+v", at)
				}
			}
			slices.Sort(names)
			if want := []string{"a/b/y.lock", "outside.lock/z.lock", "x.lock"}; err != nil || !slices.Equal(names, want) {
				t.Errorf("found %q, %v; want %q", names, err, want)
			}
		})
	})
	if found, err := beneath.Find(tree+"/missing", isLock); err != nil || found != nil {
		t.Errorf("below nothing: %v, %v", found, err)
	}
	if _, err := beneath.Find(tree+"/to-folder", isLock); !errors.Is(err, unix.ELOOP) {
		t.Errorf("below a link: %v", err)
	}
	deeper(t, filepath.Join(tree, "a"), 200)
	leavesNothingOpen(t, func() {
		if found, err := beneath.Find(filepath.Join(tree, "a"), func(name string) bool { return name == "f" }); err != nil || len(found) != 0 {
			t.Errorf("200 folders down: %v, %v", found, err)
		}
	})
}

// Who may write there decides how many there are, and how long their paths.
func TestWhatIsFoundIsBounded(t *testing.T) {
	tree, top := world(t)
	name, all := strings.Repeat("n", 250), func(string) bool { return true }
	fd := opened(t)(beneath.Open(top, "folder", unix.O_RDONLY|unix.O_DIRECTORY))
	for range 20 {
		if err := errors.Join(unix.Mkdirat(fd, name, 0o755), unix.Mknodat(fd, "here.lock", unix.S_IFREG|0o600, 0)); err != nil {
			t.Fatal(err)
		}
		fd = opened(t)(beneath.Open(fd, name, unix.O_RDONLY|unix.O_DIRECTORY))
	}
	found, err := beneath.Find(tree+"/folder", func(name string) bool { return name == "here.lock" })
	if err != nil || len(found) < 10 || len(found) > 17 {
		t.Errorf("%d of 20 were found: %v", len(found), err)
	}
	for _, at := range found {
		if err := at.Unlink(); err != nil {
			t.Error(err)
		}
	}
	for i := range 2100 {
		if err := unix.Mknodat(top, fmt.Sprintf("%d.lock", i), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	leavesNothingOpen(t, func() {
		if found, err := beneath.Find(tree, all); err != nil || len(found) != 2000 {
			t.Errorf("%d were found: %v", len(found), err)
		}
	})
}
