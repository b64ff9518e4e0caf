package beneath_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/beneath"
)

// deeper makes folders in each other below a folder, and a file in the last.
func deeper(t *testing.T, path string, n int) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range n {
		if err != nil {
			break
		}
		var next int
		if err = unix.Mkdirat(fd, "d", 0o755); err == nil {
			next, err = unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
		unix.Close(fd)
		fd = next
	}
	if err == nil {
		err = unix.Mknodat(fd, "f", unix.S_IFREG|0o600, 0)
		unix.Close(fd)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhateverAnAgentMadeIsRemovedAndNothingElse(t *testing.T) {
	tree, _, _ := closedTree(t)
	deeper(t, tree+"/open", 600)
	deeper(t, tree+"/folder", 600)
	if err := errors.Join(unix.Mkfifo(tree+"/fifo", 0), os.Chmod(tree+"/folder", 0o500), os.Symlink("../../outside", tree+"/open/out")); err != nil {
		t.Fatal(err)
	}
	asOrdinaryUser(t, filepath.Dir(tree), func() {
		leavesNothingOpen(t, func() {
			withDescriptors(t, 350, func() {
				if err := beneath.RemoveAll(tree); err != nil {
					t.Error(err)
				}
			})
		})
		for _, gone := range []string{tree, tree + "/below/what/is/gone"} {
			if err := beneath.RemoveAll(gone); err != nil {
				t.Errorf("what is gone: %v", err)
			}
		}
	})
	if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(tree), "outside/file")); err != nil || string(text) != "theirs" {
		t.Errorf("what a link led to holds %q, %v", text, err)
	}
}

// What lies too deep to be emptied where it is, an agent could make unmovable: by a folder in its way, or by closing it.
func TestNoDepthKeepsAFolderFromBeingRemoved(t *testing.T) {
	const chains, deep = 6, 140
	for name, hinder := range map[string]func(tree string){
		"names are taken": func(tree string) {
			for i := range 2 * chains {
				planted(t, tree, map[string]string{fmt.Sprintf(".deep-%d-0/file", i): ""})
			}
		},
		"all is closed": func(tree string) {
			var fds []int
			fd, err := unix.Open(tree+"/0", unix.O_RDONLY, 0)
			for ; err == nil; fd, err = unix.Openat(fd, "d", unix.O_RDONLY, 0) {
				fds = append(fds, fd)
			}
			if len(fds) <= deep {
				t.Errorf("%d folders were found: %v", len(fds), err)
			}
			for _, fd := range fds {
				if err := errors.Join(unix.Fchmod(fd, 0), unix.Close(fd)); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree, _ := world(t)
			asOrdinaryUser(t, filepath.Dir(tree), func() {
				for i := range chains {
					folder := fmt.Sprintf("%s/%d", tree, i)
					if err := os.Mkdir(folder, 0o755); err != nil {
						t.Fatal(err)
					}
					deeper(t, folder, deep)
				}
				hinder(tree)
				if err := beneath.RemoveAll(tree); err != nil {
					t.Error(err)
				}
			})
			if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is left: %v", err)
			}
		})
	}
}

func TestAFileOrALinkIsRemovedByItself(t *testing.T) {
	tree, top := world(t)
	for _, name := range []string{"file", "to-outside", "nowhere"} {
		if err := beneath.Remove(top, name); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(tree, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(tree, "../outside/file")); err != nil {
		t.Error(err)
	}
}

// What cannot be removed is told, and told once: nobody goes round it for ever.
func TestWhatMayNotBeRemovedIsTold(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: two owners")
	}
	for name, mode := range map[string]os.FileMode{"in a folder of somebody else": 0o755, "of somebody else's, in a folder of all's": 0o777 | os.ModeSticky} {
		t.Run(name, func(t *testing.T) {
			tree, top := world(t)
			planted(t, tree, map[string]string{"in/file": "theirs", "in/full/file": "theirs"})
			if err := errors.Join(os.Mkdir(tree+"/in/empty", 0o755), os.Chmod(tree+"/in", mode)); err != nil {
				t.Fatal(err)
			}
			in := opened(t)(beneath.Open(top, "in", unix.O_RDONLY|unix.O_DIRECTORY))
			asOrdinaryUser(t, t.TempDir(), func() {
				for _, name := range []string{"file", "full"} {
					leavesNothingOpen(t, func() {
						if err := beneath.Remove(in, name); err == nil {
							t.Errorf("%s is said to be removed", name)
						}
					})
				}
				if err := beneath.RemoveAll(tree + "/in"); err == nil {
					t.Error("it is said to be removed")
				}
			})
			for _, name := range []string{"in/file", "in/full/file"} {
				if _, err := os.Lstat(filepath.Join(tree, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
