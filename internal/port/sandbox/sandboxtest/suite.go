// Package sandboxtest is what every driver of a sandbox has to hold.
package sandboxtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/port/sandbox"
)

// Patience is how long a condition may take to come true on a busy machine.
const Patience = 3 * time.Minute

// Setup is what the suite gets from a driver's test.
type Setup struct {
	Driver sandbox.Driver
	Owner  sandbox.Owner // who the trees belong to
	Root   string        // a folder of the test's own; trees are made below it
	Images string        // where the driver looks for images
}

var serial atomic.Int64

// Spec returns a spec of one shell command on a fresh overlay with one base file.
func (s Setup) Spec(t *testing.T, script string) sandbox.Spec {
	t.Helper()
	n := serial.Add(1)
	return sandbox.Spec{
		ID: fmt.Sprintf("test-%d-%d", os.Getpid(), n), Owner: s.Owner, Tree: s.Tree(t),
		Argv:   []string{"/bin/sh", "-c", script},
		Env:    []string{"PATH=/usr/bin:/bin", "HOME=" + sandbox.Home, "LANG=C.UTF-8"},
		Limits: sandbox.Limits{Timeout: 2 * Patience},
	}
}

// Tree makes an overlay on a base layer that this process owns: a file, a folder with a file, a script.
func (s Setup) Tree(t *testing.T) sandbox.Tree {
	t.Helper()
	dir, err := os.MkdirTemp(s.Root, "tree-")
	must(t, err)
	tree := sandbox.Tree{
		Layers: []string{filepath.Join(dir, "base")}, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work"),
	}
	Fill(t, tree.Layers[0])
	t.Cleanup(func() { os.Chmod(filepath.Join(tree.Work, "work"), 0o700) }) // overlayfs leaves it without any right
	for _, own := range []string{tree.Upper, tree.Work} {
		must(t, os.Mkdir(own, 0o755))
		s.give(t, own)
	}
	return tree
}

// Fill makes the base that the suite works on.
func Fill(t *testing.T, base string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(base, "folder"), 0o755))
	must(t, os.WriteFile(filepath.Join(base, "file"), []byte("base\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(base, "folder", "inner"), []byte("inner\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(base, "run.sh"), []byte("#!/bin/sh\necho ran\n"), 0o755))
}

// give hands a path to the sandbox's owner.
func (s Setup) give(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		must(t, os.Lchown(path, int(s.Owner.UID), int(s.Owner.GID)))
	}
}

// result is how a spec ended and what it wrote.
type result struct {
	sandbox.Exit
	out, err string
	failed   error // of the host, not the program
}

// run starts a spec and waits for its end.
func (s Setup) run(t *testing.T, spec sandbox.Spec) result {
	t.Helper()
	var out, errs lockedBuffer
	spec.Stdout, spec.Stderr = &out, &errs
	p := s.start(t, spec)
	exit, err := p.Wait()
	must(t, err)
	return result{Exit: exit, out: out.String(), err: errs.String()}
}

// start starts a spec; whatever happens, it is killed with the test, and gone before the test's folder is removed.
func (s Setup) start(t *testing.T, spec sandbox.Spec) sandbox.Process {
	t.Helper()
	p, err := s.Driver.Start(t.Context(), spec)
	must(t, err)
	w := waited{p, sync.OnceValues(p.Wait)}
	t.Cleanup(func() {
		w.Kill()
		_, _ = w.Wait() // who cares for the end has asked
	})
	return w
}

// refused wants that a spec is not started, for a reason.
func (s Setup) refused(t *testing.T, spec sandbox.Spec, says string) {
	t.Helper()
	p, err := s.Driver.Start(t.Context(), spec)
	if err == nil {
		p.Kill()
		_, _ = p.Wait()
		t.Error("it was started")
	} else if !strings.Contains(err.Error(), says) {
		t.Errorf("it says %v, not %s", err, says)
	}
}

// waited is a process whose end can be asked for again.
type waited struct {
	sandbox.Process
	end func() (sandbox.Exit, error)
}

func (w waited) Wait() (sandbox.Exit, error) { return w.end() }

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls a condition until Patience is over.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// alive returns the host's processes whose command line holds a marker.
func alive(t *testing.T, marker string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err == nil && bytes.Contains(raw, []byte(marker)) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// marker returns a length of sleep that no other process sleeps.
func marker() string { return fmt.Sprintf("%d.%d%d", 86400, os.Getpid(), 1000+serial.Add(1)) }

// outside runs a shell command on the host, as the control of a try.
func outside(ctx context.Context, script string, env ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}, env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/" + program); err != nil {
		t.Skipf("SKIPPED: /usr/bin/%s is not installed", program)
	}
}
