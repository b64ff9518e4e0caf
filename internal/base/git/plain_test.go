package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
)

func TestARepositoryThatGitWouldWaitOnIsRefusedByName(t *testing.T) {
	for _, name := range []string{
		"config", "HEAD", "index", "packed-refs", "info/exclude", "objects/info/commit-graph", "objects/ab/cdef", "objects/pack/multi-pack-index", "refs/heads/feature/x",
	} {
		for _, linked := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), ".git")
			p := git.Project{Top: filepath.Dir(dir), GitDir: dir, CommonDir: dir}
			path := filepath.Join(dir, name)
			disktest.Put(t, path, "", 0o644)
			if err := p.Plain(); err != nil {
				t.Fatalf("a file at %s: %v", name, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			fifo := path
			if linked {
				fifo = filepath.Join(p.Top, "fifo")
				if err := os.Symlink(fifo, path); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Mkfifo(fifo, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := p.Plain(); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), name) {
				t.Errorf("a FIFO at %s (linked: %v): %v", name, linked, err)
			}
		}
	}
}
