package project_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// TestAPersonWhoCommitsAndPacksMeanwhileHasEveryBaseCopied: their git's locks, its half-written files and whatever
// lies among their objects are no business of ours, and what it packs away meanwhile is found where it went.
func TestAPersonWhoCommitsAndPacksMeanwhileHasEveryBaseCopied(t *testing.T) {
	p, _ := wt.Project(t, base)
	for _, name := range []string{"maintenance.lock", "tmp_obj_x", "stray", "pack/tmp_pack_x", "pack/multi-pack-index.lock", "ab/tmp_obj_y", "../gc.pid"} {
		path := filepath.Join(p.CommonDir, "objects", name)
		disktest.Put(t, path, "", 0o444)
	}
	stop, stopped, heads := make(chan struct{}), make(chan struct{}), make(chan git.OID, 1)
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			wt.Files(t, p.Top, map[string]string{"theirs": fmt.Sprintln(n)})
			wt.Git(t, p.Top, "add", "theirs")
			wt.Git(t, p.Top, "-c", "user.name=P", "-c", "user.email=p@example.org", "commit", "-qm", "theirs")
			select {
			case <-heads: // the one before
			default:
			}
			heads <- git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
			if n%2 == 1 {
				_ = exec.Command("git", "-C", p.Top, "gc", "-q").Run() // it may meet the lock
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	defer func() { close(stop); <-stopped }()

	r := reader(t)
	for range 10 {
		head := <-heads
		if err := p.Plain(); err != nil {
			t.Error(err)
		}
		host, err := r.Repositories.Open(t.Context(), p, head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Fit(t.Context(), host, p, head); err != nil {
			t.Error(err)
		}
		if _, err := r.Dirty(t.Context(), p, head, conversion.Settings{}); err != nil {
			t.Error(err)
		}
	}
}
