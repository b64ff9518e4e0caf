package bwrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/sandbox"
	"sallyport/internal/sandbox/bwrap"
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
	path := self(b)
	if named := os.Getenv("SALLYPORT_BENCH_SELF"); named != "" {
		path = named // the real program, which starts faster or slower than a test
	}
	d := bwrap.New(bwrap.Config{Self: path, Root: dir + "-state"})
	ours := func(i int) {
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
	ours(-1)
	plain()
	var mine, theirs time.Duration
	b.ResetTimer()
	for i := range b.N {
		began := time.Now()
		ours(i)
		half := time.Now()
		plain()
		mine += half.Sub(began)
		theirs += time.Since(half)
	}
	b.ReportMetric(float64(mine.Microseconds())/float64(b.N)/1000, "ms/ours")
	b.ReportMetric(float64(theirs.Microseconds())/float64(b.N)/1000, "ms/plain")
	b.ReportMetric(float64(mine)/float64(theirs), "ratio")
}
