package landing_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/path/landing"
)

// BenchmarkLandAndRollBack lands 50 files on a copy of Go's own source tree and rolls back, in turn with
// git apply --index && git commit, and git reset --hard; it reports medians and the ratios.
// SALLYPORT_BENCH_COPIES copies the tree that often (1 is about 10,000 files).
func BenchmarkLandAndRollBack(b *testing.B) {
	r := goTree(b)
	paths := strings.Split(gitIn(b, r.Top, "", "ls-files", "*.go"), "\n")
	files := map[string]blob{}
	for i := range 50 {
		p := paths[i*len(paths)/50]
		raw, err := os.ReadFile(filepath.Join(r.Top, p))
		if err != nil {
			b.Fatal(err)
		}
		files[p] = text(string(raw) + "// changed\n")
	}
	o := r.order(b, files)
	patch := filepath.Join(b.TempDir(), "patch")
	put(b, patch, gitIn(b, r.Top, "", "diff", "--binary", string(o.Base), string(o.Source))+"\n", 0o644)
	steps := (&journal{}).steps()
	var ours, theirs, back, reset []float64
	for b.Loop() {
		ours = append(ours, timed(func() { landTimed(b, o, steps) }))
		rolled := r.orderFrom(b, git.OID(gitIn(b, r.Top, "", "rev-parse", "main")), o.Base)
		back = append(back, timed(func() { landTimed(b, rolled, steps) }))
		gitIn(b, r.Top, "", "reset", "-q", "--hard", string(o.Base))
		theirs = append(theirs, timed(func() {
			gitIn(b, r.Top, "", "apply", "--index", patch)
			gitIn(b, r.Top, "", "commit", "-qm", "x")
		}))
		reset = append(reset, timed(func() { gitIn(b, r.Top, "", "reset", "-q", "--hard", string(o.Base)) }))
	}
	b.ReportMetric(median(ours), "land-ms")
	b.ReportMetric(median(theirs), "apply+commit-ms")
	b.ReportMetric(median(ours)/median(theirs), "land-ratio")
	b.ReportMetric(median(back), "rollback-ms")
	b.ReportMetric(median(reset), "reset-ms")
	b.ReportMetric(median(back)/median(reset), "rollback-ratio")
}

func landTimed(b *testing.B, o landing.Order, steps landing.Steps) {
	b.Helper()
	l := &landing.Lander{Host: beside}
	computed, err := l.Compute(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	if done, err := l.Land(context.Background(), computed, steps); err != nil || done.State != landing.Landed {
		b.Fatal(done.State, done.Reason, err)
	}
}

func timed(do func()) float64 {
	start := time.Now()
	do()
	return float64(time.Since(start).Microseconds()) / 1000
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

func goTree(b *testing.B) repo {
	b.Helper()
	top := b.TempDir()
	gitIn(b, top, "", "init", "-q", "-b", "main")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skipf("no Go tree to work on: %v", err)
	}
	copies := 1
	if s := os.Getenv("SALLYPORT_BENCH_COPIES"); s != "" {
		if _, err := fmt.Sscan(s, &copies); err != nil {
			b.Fatal(err)
		}
	}
	for i := range copies {
		err := os.CopyFS(filepath.Join(top, fmt.Sprint("copy", i)), os.DirFS(filepath.Join(strings.TrimSpace(string(root)), "src")))
		if err != nil {
			b.Fatal(err)
		}
	}
	gitIn(b, top, "", "config", "user.name", "P")
	gitIn(b, top, "", "config", "user.email", "p@example.org")
	gitIn(b, top, "", "-c", "core.excludesFile=/dev/null", "add", "-A", "-f")
	gitIn(b, top, "", "config", "gc.auto", "0")
	gitIn(b, top, "", "commit", "-qm", "base")
	gitIn(b, top, "", "repack", "-adq")
	return openRepo(b, top)
}
