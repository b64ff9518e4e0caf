package repository_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// BenchmarkHostRepository measures what the host copies of a project: the first base, with a long history, and one that is a
// commit further. Git's bare clone of the same stands beside the first; it packs nothing anew, and copies what no base reaches.
func BenchmarkHostRepository(b *testing.B) {
	for _, size := range []struct{ files, commits int }{{1_000, 500}, {100_000, 2_000}} {
		b.Run(fmt.Sprintf("%d files, %d commits", size.files, size.commits), func(b *testing.B) {
			p, head := manyFiles(b, size.files)
			for n := range size.commits {
				head = oneMore(b, p, head, n, size.files)
			}
			wt.Git(b, p.Top, "repack", "-adq")

			for b.Loop() {
				root := filepath.Join(b.TempDir(), "repos")
				r := at(root, repository.Config{})
				first := taken(b, r, p, head)
				held := bytesBelow(b, root)

				clone := filepath.Join(b.TempDir(), "clone.git")
				began := time.Now()
				wt.Git(b, p.Top, "clone", "-q", "--bare", "--no-local", p.Top, clone)
				cloned := time.Since(began)

				head = oneMore(b, p, head, -1, size.files)
				next := taken(b, r, p, head)
				b.ReportMetric(first.Seconds()*1e3, "first-ms")
				b.ReportMetric(cloned.Seconds()*1e3, "clone-ms")
				b.ReportMetric(first.Seconds()/cloned.Seconds(), "ratio")
				b.ReportMetric(next.Seconds()*1e3, "next-ms")
				b.ReportMetric(float64(held)/1e6, "first-MB")
				b.ReportMetric(float64(bytesBelow(b, root)-held)/1e3, "next-kB")
				b.ReportMetric(float64(bytesBelow(b, clone))/1e6, "clone-MB")
			}
		})
	}
}

// taken is how long the host takes to hold what a commit reaches.
func taken(b *testing.B, r *repository.Store, p git.Project, commit git.OID) time.Duration {
	b.Helper()
	began := time.Now()
	if _, err := r.Open(b.Context(), p, commit); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// oneMore is a commit upon another that changes one file.
func oneMore(b *testing.B, p git.Project, head git.OID, n, files int) git.OID {
	b.Helper()
	in := git.Import{Ref: "refs/heads/main", From: head, Parents: []git.OID{head}, Message: "commit " + strconv.Itoa(n) + "\n",
		Writes: []git.Write{{Path: manyName((n + files) % files), Mode: git.File, Data: git.Text(fmt.Sprintf("package changed%d\n", n))}}}
	made, err := p.Common(disk.Ops{}).Import(b.Context(), "bench:commit", in)
	if err != nil {
		b.Fatal(err)
	}
	return made.OID
}

// bytesBelow is what the files below a folder take, each once however many names it has.
func bytesBelow(b *testing.B, dir string) (sum int64) {
	b.Helper()
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || seen[st.Ino] {
			return err
		}
		seen[st.Ino] = true
		sum += st.Size
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

func manyName(i int) string { return fmt.Sprintf("d%d/e%d/f%d.go", i%100, i/100%100, i) }

// manyFiles makes a person's repository with n small files, checked out.
func manyFiles(b *testing.B, n int) (git.Project, git.OID) {
	b.Helper()
	p, _ := wt.Project(b, nil)
	in := git.Import{Ref: "refs/heads/main", Message: "many\n"}
	for i := range n {
		in.Writes = append(in.Writes, git.Write{Path: manyName(i), Mode: git.File, Data: git.Text(fmt.Sprintf("package f%d\n", i))})
	}
	made, err := p.Common(disk.Ops{}).Import(b.Context(), "bench:base", in)
	if err != nil {
		b.Fatal(err)
	}
	wt.Git(b, p.Top, "reset", "-q", "--hard")
	return p, made.OID
}
