package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"sallyport/internal/disk"
	"sallyport/internal/git"
	"sallyport/internal/id"
	"sallyport/internal/workspace"
	wt "sallyport/internal/workspace/workspacetest"
)

// BenchmarkLargeTree compares with what git does for the same: a work tree of its own, and
// finding 65 changes. The tree has 100,000 files, or SALLYPORT_BENCH_FILES.
func BenchmarkLargeTree(b *testing.B) {
	wt.CanOverlay(b)
	files := 100_000
	if n, err := strconv.Atoi(os.Getenv("SALLYPORT_BENCH_FILES")); err == nil {
		files = n
	}
	p, head := manyFiles(b, files)
	m := workspace.New(workspace.Config{Root: filepath.Join(b.TempDir(), "state"), Strategy: workspace.Overlay})
	spec := func(change string) workspace.Spec {
		return workspace.Spec{Change: id.Change(change), Project: p, Base: head, Branch: "main", Owner: wt.Self()}
	}
	w, err := m.Prepare(b.Context(), spec("chg-00000001"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("prepare on a cached base", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			if _, err := m.Prepare(b.Context(), spec(fmt.Sprintf("chg-%d-%d", b.N, n))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("git worktree add", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			wt.Git(b, p.Top, "worktree", "add", "-q", "--detach", filepath.Join(b.TempDir(), strconv.Itoa(n)))
		}
	})
	var ops []wt.Op
	for i := range 65 {
		ops = append(ops, wt.Write(manyName(i), "changed\n"))
		wt.Files(b, p.Top, map[string]string{manyName(i): "changed\n"})
	}
	wt.Edit(b, w, ops...)
	b.Run("walk of 65 changes", func(b *testing.B) {
		for b.Loop() {
			if d, err := m.Walk(b.Context(), w); err != nil || len(d.Changes) != 65 {
				b.Fatalf("%d changes, %v", len(d.Changes), err)
			}
		}
	})
	b.Run("git status of 65 changes", func(b *testing.B) {
		for b.Loop() {
			wt.Git(b, p.Top, "status", "--porcelain")
		}
	})
}

func manyName(i int) string { return fmt.Sprintf("d%d/e%d/f%d.go", i%100, i/100%100, i) }

// manyFiles makes a person's repository with n small files, checked out.
func manyFiles(b *testing.B, n int) (git.Project, git.OID) {
	b.Helper()
	p, _ := wt.Project(b, nil)
	in := git.Import{Ref: "refs/heads/main", Message: "many\n"}
	for i := range n {
		in.Writes = append(in.Writes, git.Write{Path: manyName(i), Mode: git.File, Data: workspace.Text(fmt.Sprintf("package f%d\n", i))})
	}
	made, err := p.Common(disk.Ops{}).Import(b.Context(), "bench:base", in)
	if err != nil {
		b.Fatal(err)
	}
	wt.Git(b, p.Top, "reset", "-q", "--hard")
	return p, made.OID
}
