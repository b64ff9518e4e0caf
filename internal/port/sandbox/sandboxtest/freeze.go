package sandboxtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"sallyport/internal/port/sandbox"
)

// snapshot sums up all that could move in a tree: names, sizes, times.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a file that is gone; a frozen tree has none
		}
		if info, err := d.Info(); err == nil {
			b.WriteString(path + info.ModTime().String() + utoa(uint32(info.Size())) + "\n")
		}
		return nil
	})
	must(t, err)
	return b.String()
}

// quiet watches a tree for a time in which running writers would write hundreds of times.
func quiet(t *testing.T, dir string) bool {
	t.Helper()
	before := snapshot(t, dir)
	over := time.After(60 * time.Millisecond)
	for {
		select {
		case <-over:
			return true
		default:
			if snapshot(t, dir) != before {
				return false
			}
		}
	}
}

func testFreeze(t *testing.T, s Setup) {
	writers := map[string]string{
		"writers that left their session": "for i in 1 2 3 4 5 6; do setsid sh -c \"while :; do echo x >> w$i; done\" & done; wait",
		"writers that nobody waits for":   "(setsid sh -c '(while :; do echo x >> d1; done) & (setsid sh -c \"while :; do echo x >> d2; done\" &)' &); sleep 100",
		"a fork storm":                    "for i in 1 2 3; do (while :; do (echo x >> f$i); /bin/true; done) & done; wait",
	}
	if _, err := os.Stat("/usr/bin/python3"); err == nil {
		writers["children by vfork"] = spawned
		writers["a writer that has the kernel wake it"] = woken
	} else {
		t.Log("SKIPPED: children by vfork, and a writer that has the kernel wake it: /usr/bin/python3 is not installed")
	}
	for name, script := range writers {
		t.Run(name, func(t *testing.T) {
			spec := s.Spec(t, script)
			p := s.start(t, spec)
			moving := func() bool { return !quiet(t, spec.Tree.Upper) }
			for range 5 {
				eventually(t, "the writers write", moving)
				must(t, p.Freeze(t.Context()))
				if !quiet(t, spec.Tree.Upper) {
					t.Fatal("something was written in a frozen sandbox")
				}
				must(t, p.Thaw())
			}
			must(t, p.Thaw())
			eventually(t, "the writers write again", moving)
			must(t, p.Freeze(t.Context()))
			p.Kill()
			if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
				t.Errorf("a frozen sandbox was killed: %+v, %v", exit, err)
			}
		})
	}
	t.Run("memory that is written without a call", func(t *testing.T) { testFrozenMemory(t, s) })
	testFreezeTwice(t, s)
	testFreezeAtTheEnd(t, s)
	t.Run("a sandbox that is over is not frozen", func(t *testing.T) {
		p := s.start(t, s.Spec(t, "true"))
		_, err := p.Wait()
		must(t, err)
		if err := p.Freeze(t.Context()); !errors.Is(err, sandbox.ErrEnded) {
			t.Errorf("err = %v", err)
		}
		must(t, p.Thaw())
	})
}

func testAttach(t *testing.T, s Setup) {
	t.Run("a shell on a terminal, beside the program", func(t *testing.T) {
		spec := s.Spec(t, "touch here; sleep 100")
		p := s.start(t, spec)
		eventually(t, "the program runs", func() bool { _, err := os.Stat(filepath.Join(spec.Tree.Upper, "here")); return err == nil })
		master, slave, err := pty.Open()
		must(t, err)
		defer master.Close()
		must(t, pty.Setsize(master, &pty.Winsize{Rows: 33, Cols: 77}))
		a, err := p.Attach(t.Context(), []string{"sh", "-c",
			`stty size; echo "$EXTRA:$HOME:$LANG"; ls; echo on tty > /dev/tty; read line; echo "got $line"; exit 9`},
			[]string{"EXTRA=1", "LANG=C"}, "", slave)
		must(t, err)
		slave.Close()
		var said lockedBuffer
		go func() {
			buf := make([]byte, 1024)
			for {
				n, err := master.Read(buf)
				said.Write(buf[:n])
				if err != nil {
					return
				}
			}
		}()
		eventually(t, "it asks", func() bool { return strings.Contains(said.String(), "on tty") })
		_, err = master.Write([]byte("hello\n"))
		must(t, err)
		exit, err := a.Wait()
		if err != nil || exit.Code != 9 {
			t.Errorf("%+v, %v", exit, err)
		}
		eventually(t, "it answers", func() bool { return strings.Contains(said.String(), "got hello") })
		for _, want := range []string{"33 77", "1:" + sandbox.Home + ":C", "here"} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("no %q in %q", want, said.String())
			}
		}
	})
	t.Run("killed alone, and ended with the sandbox", func(t *testing.T) {
		mark := marker()
		p := s.start(t, s.Spec(t, "sleep 100"))
		master, slave, err := pty.Open()
		must(t, err)
		defer master.Close()
		defer slave.Close()
		first, err := p.Attach(t.Context(), []string{"sleep", mark}, nil, "/tmp", slave)
		must(t, err)
		first.Kill()
		if exit, err := first.Wait(); err != nil || exit.Signal != "SIGKILL" {
			t.Errorf("%+v, %v", exit, err)
		}
		second, err := p.Attach(t.Context(), []string{"sleep", mark}, nil, "", slave)
		must(t, err)
		if _, err := p.Attach(t.Context(), []string{"no-such-program"}, nil, "", slave); err == nil || !strings.Contains(err.Error(), "no-such-program") {
			t.Errorf("err = %v", err)
		}
		p.Kill()
		if _, err := second.Wait(); !errors.Is(err, sandbox.ErrEnded) {
			t.Errorf("what ended with its sandbox says: %v", err)
		}
		_, err = p.Wait()
		must(t, err)
		if left := alive(t, mark); len(left) > 0 {
			t.Errorf("left alive: %s", strings.Join(left, " "))
		}
		if _, err := p.Attach(t.Context(), []string{"true"}, nil, "", slave); !errors.Is(err, sandbox.ErrEnded) {
			t.Errorf("attached to a sandbox that is over: %v", err)
		}
	})
}
