package workspace_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// parts are the names that random paths are made of: few, so that edits meet, and those of the base.
var parts = []string{"src", "deep", "a.go", "c.go", "README", "docs", "run.sh", "link", "x", "-rf", "new\nline", "\xff\xfe", "*", ":(top)x", ".gitignore"}

func anyPath(r *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 3).Draw(r, label), "/")
}

// anyEdits draws what an agent does; what cannot be done is left out when it is applied.
func anyEdits(r *rapid.T) []wt.Op {
	var ops []wt.Op
	for range rapid.IntRange(0, 10).Draw(r, "edits") {
		op := wt.Op{Path: []byte(anyPath(r, "path"))}
		op.Do = rapid.SampledFrom([]string{"write", "write", "append", "remove", "remove", "mkdir", "rename", "rename", "chmodfile", "chmod", "symlink", "link", "fifo", "setxattr"}).Draw(r, "do")
		switch op.Do {
		case "write", "append":
			op.Data = rapid.OneOf(rapid.SampledFrom([][]byte{{}, []byte("package a\n"), []byte("crlf\r\n"), {0, 1, 255}}), rapid.SliceOfN(rapid.Byte(), 0, 99)).Draw(r, "content")
			op.Mode = rapid.SampledFrom([]uint32{0o644, 0o755, 0o600}).Draw(r, "mode")
		case "rename", "link":
			op.To = []byte(anyPath(r, "to"))
		case "chmodfile":
			op.Mode = rapid.SampledFrom([]uint32{0o644, 0o755, 0o600, 0o4755}).Draw(r, "mode")
		case "chmod":
			op.Mode = rapid.SampledFrom([]uint32{0, 0o200, 0o755, 0o1777}).Draw(r, "mode")
		case "symlink":
			op.To = []byte(rapid.SampledFrom([]string{"src", "../README", "/etc", "."}).Draw(r, "target"))
		case "setxattr":
			op.To = []byte(rapid.SampledFrom([]string{"user.overlay.opaque", "user.overlay.whiteout", "user.x"}).Draw(r, "name"))
			op.Data = []byte("y")
		}
		ops = append(ops, op)
	}
	return ops
}

// Any edits, any way back: what the sandbox sees is what the commit holds, and so is what the
// next checkpoint would hold. A new workspace on the same commit sees the same.
func TestAnyEditsGoBackToAnyState(t *testing.T) {
	rapidtest.Cases(t, 25)
	for _, strategy := range []workspace.Strategy{workspace.Overlay, workspace.Copy} {
		t.Run(string(strategy), func(t *testing.T) {
			t.Parallel() // each waits for the disk most of the time
			if strategy == workspace.Overlay {
				wt.CanOverlay(t)
			}
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: strategy})
			p, head := wt.Project(t, base)
			host, err := m.EnsureRepository(gittest.Context(t), p, head)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			rapidtest.Check(t, func(r *rapid.T) {
				n++
				spec := workspace.Spec{Change: id.Change(fmt.Sprintf("chg-%08d", n)), Project: p, Base: head, Branch: "main", Owner: wt.Self()}
				w, err := m.Prepare(gittest.Context(t), spec)
				if err != nil {
					r.Fatal(err)
				}
				s := &studio{m: m, w: w, host: host, live: wt.Show(t, w)}
				defer func() {
					s.live.Close()
					if err := m.Remove(gittest.Context(t), spec.Change); err != nil {
						r.Fatal(err)
					}
				}()
				states := []git.OID{head}
				for range rapid.IntRange(1, 3).Draw(r, "days") {
					s.live.Try(t, "", anyEdits(r)...)
					states = append(states, s.keep(t))
				}
				s.live.Try(t, "", anyEdits(r)...)
				to := rapid.SampledFrom(states).Draw(r, "to")
				s.restore(t, to)
				s.exactly(t, to)
				s.live.Close()
				if s.w, err = m.Renew(gittest.Context(t), spec, host, states[len(states)-1]); err != nil {
					r.Fatal(err)
				}
				s.live = wt.Show(t, s.w)
				s.exactly(t, states[len(states)-1])
				if t.Failed() {
					r.Fatal("as above")
				}
			})
		})
	}
}
