package beneath_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// blocks is what the file system says of one file or folder, in bytes.
func blocks(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// measured is a tree in which every kind of entry takes part: files, one with two names, folders in each other, links.
func measured(t *testing.T) (tree string, all int64) {
	t.Helper()
	tree, _ = world(t)
	planted(t, tree, map[string]string{"big": strings.Repeat("x", 100_000), "d/e/f/deep": strings.Repeat("x", 30_000), "d/two": strings.Repeat("x", 20_000)})
	planted(t, filepath.Join(filepath.Dir(tree), "outside"), map[string]string{"huge": strings.Repeat("x", 900_000)})
	if err := os.Link(filepath.Join(tree, "d/two"), filepath.Join(tree, "d/e/names")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(tree, "d/two"), filepath.Join(tree, "third")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			all += blocks(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree, all - 2*blocks(t, filepath.Join(tree, "third"))
}

func TestWhatAFolderTakesIsCountedOnceAndNotBeyondIt(t *testing.T) {
	tree, all := measured(t)
	for path, want := range map[string]int64{
		tree: all, tree + "/d/e/f": blocks(t, tree+"/d/e/f") + blocks(t, tree+"/d/e/f/deep"), tree + "/big": blocks(t, tree+"/big"),
		tree + "/to-outside": blocks(t, tree+"/to-outside"), tree + "/missing": 0, tree + "/big/below": 0,
	} {
		leavesNothingOpen(t, func() {
			if got, err := beneath.Allocated(t.Context(), path); err != nil || got != want {
				t.Errorf("%s takes %d, %v; want %d", path, got, err, want)
			}
		})
	}
	leavesNothingOpen(t, func() {
		if got, err := beneath.AllocatedBelow(t.Context(), tree); err != nil || got != all-blocks(t, tree) {
			t.Errorf("below it %d are taken, %v; want %d", got, err, all-blocks(t, tree))
		}
	})
	if _, err := beneath.AllocatedBelow(t.Context(), tree+"/missing/x"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("below nothing: %v", err)
	}
	if _, err := beneath.Allocated(t.Context(), tree+"/"+strings.Repeat("x", 300)); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("what cannot be looked at: %v", err)
	}
}

func TestWhatItsOwnerClosedCountsAndStaysClosed(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o100, 0o400, 0o055} {
		tree, all := measured(t)
		closed := filepath.Join(tree, "d/e/f")
		if err := os.Chmod(closed, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(closed, 0o755) })
		asOrdinaryUser(t, tree, func() {
			leavesNothingOpen(t, func() {
				if got, err := beneath.Allocated(t.Context(), tree); err != nil || got != all {
					t.Errorf("%v: it takes %d, %v; with what is closed it is %d", mode, got, err, all)
				}
			})
			if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != mode {
				t.Errorf("it was %v and is %v, %v", mode, info.Mode().Perm(), err)
			}
		})
	}
}

func TestWhatAnotherOwnsAndClosedCountsByItselfAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a folder to somebody else")
	}
	tree, all := measured(t)
	closed := filepath.Join(tree, "d/e/f")
	asOrdinaryUser(t, tree, func() {}) // who owns it all from here on
	for _, err := range []error{os.Lchown(closed, 0, 0), os.Chmod(closed, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := all - blocks(t, filepath.Join(closed, "deep"))
	asUser(t, func() {
		if got, err := beneath.Allocated(t.Context(), tree); err != nil || got != want {
			t.Errorf("it takes %d, %v; want %d", got, err, want)
		}
	})
}

func TestACountEndsAtItsLimits(t *testing.T) {
	tree, _ := measured(t)
	parent := opened(t)(beneath.Top(filepath.Dir(tree), unix.O_RDONLY))
	d, e, f := blocks(t, tree+"/d/e")+blocks(t, tree+"/d/two"), blocks(t, tree+"/d/e/f"), blocks(t, tree+"/d/e/f/deep")
	top := opened(t)(beneath.Top(tree, unix.O_RDONLY))
	for depth, want := range []int64{d, d + e, d + e + f, d + e + f} { // the other name of two counts with the first
		leavesNothingOpen(t, func() {
			if got, err := beneath.AllocatedIn(t.Context(), top, "d", 0, depth); err != nil || got != want {
				t.Errorf("to a depth of %d it takes %d, %v; want %d", depth, got, err, want)
			}
		})
	}
	for entries, want := range map[int]error{5: nil, 4: beneath.ErrTooMany, 1: beneath.ErrTooMany} { // two, e, names, f, deep
		leavesNothingOpen(t, func() {
			if _, err := beneath.AllocatedIn(t.Context(), top, "d", entries, 9); !errors.Is(err, want) {
				t.Errorf("of at most %d entries: %v, want %v", entries, err, want)
			}
		})
	}
	if got, err := beneath.AllocatedIn(t.Context(), parent, "missing", 0, 9); err != nil || got != 0 {
		t.Errorf("what is gone takes %d, %v", got, err)
	}
}

func TestACountThatNobodyWantsAnyMoreEnds(t *testing.T) {
	tree, top := world(t)
	for i := range 4096 {
		if err := unix.Mknodat(top, fmt.Sprint("f", i), unix.S_IFREG|0o600, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := beneath.AllocatedBelow(t.Context(), tree); err != nil {
		t.Error(err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := beneath.Allocated(gone, tree); !errors.Is(err, enough) {
		t.Errorf("%v, want it to end", err)
	}
	if _, err := beneath.Allocated(gone, tree+"/folder"); err != nil {
		t.Errorf("a count of three entries looks at the clock: %v", err)
	}
}
