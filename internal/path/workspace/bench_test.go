package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
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

// BenchmarkNewCommit compares a workspace on a commit that has no base yet, its parent's being cached, with what git
// does for the same. A hundred files differ. Ours and git's go in turn; cost that grew with the tree would show
// between the sizes.
func BenchmarkNewCommit(b *testing.B) {
	wt.CanOverlay(b)
	for _, files := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("%d files", files), func(b *testing.B) {
			p, head := manyFiles(b, files)
			m := workspace.New(workspace.Config{Root: filepath.Join(b.TempDir(), "state"), Strategy: workspace.Overlay})
			prepare := func(n int, base git.OID) {
				spec := workspace.Spec{Change: id.Change(fmt.Sprintf("chg-%d-%d", b.N, n)), Project: p, Base: base, Branch: "main", Owner: wt.Self()}
				if _, err := m.Prepare(b.Context(), spec); err != nil {
					b.Fatal(err)
				}
			}
			prepare(0, head)
			var ours, rival []time.Duration
			for n := 1; b.Loop(); n++ {
				b.StopTimer()
				in := git.Import{Ref: "refs/heads/main", From: head, Parents: []git.OID{head}, Message: "next\n"}
				for i := range 100 {
					in.Writes = append(in.Writes, git.Write{Path: manyName(i * files / 100), Mode: git.File, Data: workspace.Text(fmt.Sprintf("package changed%d\n", n))})
				}
				made, err := p.Common(disk.Ops{}).Import(b.Context(), "bench:commit", in)
				if err != nil {
					b.Fatal(err)
				}
				head = made.OID
				unix.Sync() // neither waits for what the other has left to write
				began := time.Now()
				b.StartTimer()
				prepare(n, head)
				b.StopTimer()
				ours = append(ours, time.Since(began))
				began = time.Now()
				wt.Git(b, p.Top, "worktree", "add", "-q", "--detach", filepath.Join(b.TempDir(), strconv.Itoa(n)), string(head))
				rival = append(rival, time.Since(began))
				b.StartTimer()
			}
			slices.Sort(ours)
			slices.Sort(rival)
			mid := len(ours) / 2
			b.ReportMetric(ours[mid].Seconds()*1e3, "ours-ms")
			b.ReportMetric(rival[mid].Seconds()*1e3, "git-ms")
			b.ReportMetric(rival[mid].Seconds()/ours[mid].Seconds(), "ratio")
			b.Logf("ours %v / %v / %v, git worktree add %v / %v / %v (min / median / max of %d)", ours[0], ours[mid], ours[len(ours)-1], rival[0], rival[mid], rival[len(rival)-1], len(ours))
		})
	}
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
