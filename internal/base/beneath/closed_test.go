package beneath_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// closedTree has folders and files that their owner closed, and says how.
func closedTree(t *testing.T) (tree string, top int, modes map[string]os.FileMode) {
	t.Helper()
	tree, top = world(t)
	planted(t, tree, map[string]string{"a/b/f": "text", "listed/f": "text", "open/g": "text"})
	modes = map[string]os.FileMode{"a/b/f": 0, "a/b": 0, "a": 0, "listed": 0o400, "open/g": 0o200}
	for _, name := range []string{"a/b/f", "a/b", "a", "listed", "open/g"} { // the inner ones first
		if err := os.Chmod(filepath.Join(tree, name), modes[name]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, name := range []string{"a", "a/b", "listed"} {
			_ = os.Chmod(filepath.Join(tree, name), 0o755)
		}
	})
	return tree, top, modes
}

// stayClosed looks as somebody who may look everywhere, if there is one here.
func stayClosed(t *testing.T, tree string, modes map[string]os.FileMode) {
	t.Helper()
	for name, want := range modes {
		info, err := os.Lstat(filepath.Join(tree, name))
		if errors.Is(err, os.ErrPermission) {
			continue // it is closed indeed
		}
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is left with %v, %v; its owner made it %v", name, info.Mode(), err, want)
		}
	}
}

func TestAFileThatItsOwnerClosedIsReadAndStaysClosed(t *testing.T) {
	tree, top, modes := closedTree(t)
	asOrdinaryUser(t, tree, func() {
		for _, name := range []string{"file", "a/b/f", "listed/f", "open/g"} {
			leavesNothingOpen(t, func() {
				f, size, err := beneath.File(top, name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				defer f.Close()
				if text, err := io.ReadAll(f); err != nil || len(text) != 4 || size != 4 {
					t.Errorf("%s holds %q of %d, %v", name, text, size, err)
				}
			})
		}
	})
	stayClosed(t, tree, modes)
}

func TestWhatIsNoFileIsNotReadAsOne(t *testing.T) {
	tree, top, modes := closedTree(t)
	if err := unix.Mkfifo(filepath.Join(tree, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, tree, func() {
		for name, want := range map[string]string{
			"fifo": "not a regular file", "folder": "not a regular file", "missing": "no such file", "to-file": "too many levels",
			"a/missing": "no such file", "a/b/missing": "no such file", "missing/f": "no such file", "to-folder/file": "too many levels", "a/b/f/g": "not a directory",
		} {
			leavesNothingOpen(t, func() {
				f, _, err := beneath.File(top, name)
				if err == nil {
					f.Close()
				}
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+name+`"`) {
					t.Errorf("%s: %v, want one with %q", name, err, want)
				}
			})
		}
	})
	stayClosed(t, tree, modes)
}

func TestAFolderThatItsOwnerClosedIsListedAndLookedInto(t *testing.T) {
	tree, top, modes := closedTree(t)
	asOrdinaryUser(t, tree, func() {
		for name, inside := range map[string]string{"folder": "file", "a": "b", "listed": "f"} {
			leavesNothingOpen(t, func() {
				fd, restore, err := beneath.Folder(top, name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				var names []string
				err = beneath.Names(fd, func(name string) error { names = append(names, name); return nil })
				if err != nil || !strings.Contains(strings.Join(names, " "), inside) {
					t.Errorf("%s holds %q, %v", name, names, err)
				}
				in, err := beneath.Look(fd, inside)
				if err != nil {
					t.Errorf("%s in %s: %v", inside, name, err)
				}
				unix.Close(in)
				unix.Close(fd)
				restore()
			})
		}
		for name, want := range map[string]error{"file": unix.ENOTDIR, "to-folder": unix.ELOOP, "missing": unix.ENOENT, "open/g": unix.ENOTDIR} {
			leavesNothingOpen(t, func() {
				if _, _, err := beneath.Folder(top, name); !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			})
		}
	})
	stayClosed(t, tree, modes)
}

// The folder above belongs to somebody else: nothing of it is opened, and nothing of it is changed.
func TestWhatIsNotOnesOwnStaysClosed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: two owners")
	}
	tree, top, modes := closedTree(t)
	asOrdinaryUser(t, t.TempDir(), func() {
		for _, name := range []string{"a/b/f", "listed/f", "open/g"} {
			leavesNothingOpen(t, func() {
				if f, _, err := beneath.File(top, name); err == nil {
					f.Close()
					t.Errorf("%s was read", name)
				}
			})
		}
	})
	stayClosed(t, tree, modes)
}
