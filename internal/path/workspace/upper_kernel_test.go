package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// plant makes one raw entry of an upper folder: what a kernel may leave there, and what none
// leaves but would show somehow. What cannot be made is left out. Marked empty files are not
// drawn: kernels take them for deletions in lower layers only, or by name but not in a list.
func plant(r *rapid.T, upper string) {
	at := filepath.Join(upper, anyPath(r, "at"))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return
	}
	kinds := []string{"file", "folder", "opaque folder", "link", "whiteout", "whiteout", "another device", "fifo", "odd opaque"}
	kind := rapid.SampledFrom(kinds).Draw(r, "kind")
	var err error
	switch kind {
	case "file":
		text := rapid.SampledFrom([]string{"", "read me\n", "other"}).Draw(r, "text")
		var f *os.File // a fifo that stands there already would be waited for
		if f, err = os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o644); err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
	case "folder":
		err = os.Mkdir(at, 0o755)
	case "opaque folder", "odd opaque":
		value := map[string]string{"opaque folder": "y", "odd opaque": "n"}[kind]
		if err = os.MkdirAll(at, 0o755); err == nil {
			err = unix.Setxattr(at, "user.overlay.opaque", []byte(value), 0)
		}
	case "link":
		err = os.Symlink("README", at)
	case "whiteout":
		err = unix.Mknod(at, unix.S_IFCHR, 0)
	case "another device":
		err = unix.Mknod(at, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3)))
	case "fifo":
		err = unix.Mkfifo(at, 0o644)
	}
	_ = err // as it says: left out
}

// The kernel is the oracle: what the walk makes of an upper folder is what a mount of it shows.
func TestAnUpperFolderIsReadAsTheKernelReadsIt(t *testing.T) {
	wt.CanOverlay(t)
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	p, head := wt.Project(t, base)
	host, err := m.EnsureRepository(gittest.Context(t), p, head)
	if err != nil {
		t.Fatal(err)
	}
	rapidtest.Cases(t, 50)
	n := 0
	rapidtest.Check(t, func(r *rapid.T) {
		n++
		spec := workspace.Spec{Change: id.Change(fmt.Sprintf("chg-%08d", n)), Project: p, Base: head, Owner: wt.Self()}
		w, err := m.Prepare(gittest.Context(t), spec)
		if err != nil {
			r.Fatal(err)
		}
		for range rapid.IntRange(0, 9).Draw(r, "entries") {
			plant(r, w.Tree.Upper)
		}
		s := &studio{m: m, w: w, host: host, live: wt.Show(t, w)}
		defer func() {
			s.live.Close()
			if err := m.Remove(gittest.Context(t), spec.Change); err != nil {
				r.Fatal(err)
			}
		}()
		same(t, s.holds(t, s.keep(t)), s.sees(t))
		if t.Failed() {
			r.Fatal("as above")
		}
	})
}
