package bwrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
)

// BenchmarkStartToExitOfTrue measures a whole sandbox on an overlay, and the rival
// in turn in the same run: plain bwrap from the same uid with the same namespaces.
func BenchmarkStartToExitOfTrue(b *testing.B) {
	needBwrap(b)
	dir := b.TempDir()
	tree := sandbox.Tree{Layers: []string{filepath.Join(dir, "base")}, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
	for _, path := range []string{tree.Layers[0], tree.Upper, tree.Work} {
		if err := os.Mkdir(path, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	who := owner()
	for _, path := range []string{tree.Upper, tree.Work} {
		if err := os.Lchown(path, int(who.UID), int(who.GID)); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() { os.Chmod(filepath.Join(tree.Work, "work"), 0o700) })
	// The programs to measure, in turn: this test, or the real ones, which start faster.
	programs := []string{self(b)}
	if named := os.Getenv("SALLYPORT_BENCH_SELF"); named != "" {
		programs = filepath.SplitList(named)
	}
	ours := func(d *bwrap.Driver, i int) {
		p, err := d.Start(b.Context(), sandbox.Spec{
			ID: "bench-" + strconv.Itoa(i), Owner: who, Tree: tree, Argv: []string{"/usr/bin/true"}, Env: []string{"PATH=/usr/bin"},
		})
		if err != nil {
			b.Fatal(err)
		}
		if exit, err := p.Wait(); err != nil || exit.Code != 0 {
			b.Fatal(exit, err)
		}
	}
	plain := func() {
		cmd := exec.Command("bwrap", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup",
			"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
			"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", sandbox.Home, "--bind", dir, sandbox.Mountpoint,
			"--new-session", "--die-with-parent", "/usr/bin/true")
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID}}
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		b.Fatal(err)
	}
	var runs []func(int)
	for _, path := range programs {
		d := bwrap.New(bwrap.Config{Self: path, Root: dir + "-state"})
		runs = append(runs, func(i int) { ours(d, i) })
	}
	runs = append(runs, func(int) { plain() })
	for _, run := range runs {
		run(-1)
	}
	took := make([][]time.Duration, len(runs))
	b.ResetTimer()
	for i := range b.N {
		for k, run := range runs {
			began := time.Now()
			run(i)
			took[k] = append(took[k], time.Since(began))
		}
	}
	b.StopTimer()
	median := func(k int) time.Duration {
		slices.Sort(took[k])
		return took[k][len(took[k])/2]
	}
	rival := median(len(runs) - 1)
	tell := func(k int, name string) {
		b.ReportMetric(float64(median(k).Microseconds())/1000, "ms/"+name)
		b.ReportMetric(float64(took[k][0].Microseconds())/1000, "ms-min/"+name)
	}
	tell(len(runs)-1, "plain")
	for k := range programs {
		name := "ours"
		if k > 0 {
			name += strconv.Itoa(k + 1)
		}
		tell(k, name)
		b.ReportMetric(float64(median(k))/float64(rival), "ratio/"+name)
		b.ReportMetric(float64(took[k][0])/float64(took[len(runs)-1][0]), "ratio-min/"+name)
	}
}
