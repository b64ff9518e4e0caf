package sandboxtest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// readIn reads a file below an open folder.
func readIn(t *testing.T, dir *os.File, path string) string {
	t.Helper()
	fd, err := unix.Openat(int(dir.Fd()), path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	raw, err := io.ReadAll(f)
	must(t, err)
	return string(raw)
}

// replaceIn puts a file with a text in the place of what is at path, as the tree's owner.
func (s Setup) replaceIn(t *testing.T, dir *os.File, path, text string) {
	t.Helper()
	temp := path + ".new"
	fd, err := unix.Openat(int(dir.Fd()), temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	must(t, err)
	f := os.NewFile(uintptr(fd), temp)
	defer f.Close()
	_, err = f.WriteString(text)
	must(t, err)
	if os.Geteuid() == 0 {
		must(t, f.Chown(int(s.Owner.UID), int(s.Owner.GID)))
	}
	must(t, unix.Renameat(int(dir.Fd()), temp, int(dir.Fd()), path))
}

func testView(t *testing.T, s Setup) {
	t.Run("it is the merged tree, also while frozen, and the program sees what is written there", func(t *testing.T) {
		var out lockedBuffer
		orders, tell := io.Pipe()
		defer tell.Close()
		spec := s.Spec(t, `echo mine > own; chmod 0 .; echo ready; while read line; do eval "$line"; done`)
		spec.Stdin, spec.Stdout = orders, &out
		p := s.start(t, spec)
		eventually(t, "the program is ready", func() bool { return strings.Contains(out.String(), "ready") })
		view, err := p.View(t.Context())
		must(t, err)
		defer view.Close()
		must(t, p.Freeze(t.Context()))
		top := "/proc/self/fd/" + utoa(uint32(view.Fd()))
		must(t, unix.Chmod(top, 0o755)) // closed by the agent: an ordinary user has no way in either
		for path, want := range map[string]string{"file": "base\n", "own": "mine\n"} {
			if got := readIn(t, view, path); got != want {
				t.Errorf("%s holds %q, want %q", path, got, want)
			}
		}
		s.replaceIn(t, view, "file", "restored\n")
		must(t, unix.Unlinkat(int(view.Fd()), "run.sh", 0))
		must(t, p.Thaw())
		_, err = io.WriteString(tell, "cat file; test -e run.sh || echo gone; echo more >> file; echo done\n")
		must(t, err)
		eventually(t, "the program has read and written", func() bool { return strings.Contains(out.String(), "done") })
		if got := out.String(); got != "ready\nrestored\ngone\ndone\n" {
			t.Errorf("the program saw %q", got)
		}
		if got := readIn(t, view, "file"); got != "restored\nmore\n" {
			t.Errorf("what the program wrote next is seen as %q", got)
		}
		if raw, err := os.ReadFile(filepath.Join(spec.Tree.Upper, "file")); err != nil || string(raw) != "restored\nmore\n" {
			t.Errorf("the upper folder holds %q, %v", raw, err)
		}
	})
	t.Run("its git and what it binds are other mounts", func(t *testing.T) {
		spec := s.Spec(t, "echo ready; sleep 100")
		var out lockedBuffer
		spec.Stdout = &out
		spec.Tree.GitDir = filepath.Join(s.Root, "git-of-view")
		must(t, os.Mkdir(spec.Tree.GitDir, 0o755))
		s.give(t, spec.Tree.GitDir)
		p := s.start(t, spec)
		eventually(t, "the program is ready", func() bool { return out.String() != "" })
		view, err := p.View(t.Context())
		must(t, err)
		defer view.Close()
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV}
		if fd, err := unix.Openat2(int(view.Fd()), ".git", &how); err == nil {
			unix.Close(fd)
			t.Error("the agent's own git was entered from the workspace")
		}
		if fd, err := unix.Openat2(int(view.Fd()), "..", &how); err == nil {
			unix.Close(fd)
			t.Error("the sandbox's root was entered from the workspace")
		}
	})
	t.Run("a sandbox that is over shows nothing, and its tree is free", func(t *testing.T) {
		spec := s.Spec(t, "true")
		p := s.start(t, spec)
		_, err := p.Wait()
		must(t, err)
		if view, err := p.View(t.Context()); err == nil {
			view.Close()
			t.Error("no error")
		}
		again := s.Spec(t, "cat file")
		again.Tree = spec.Tree
		if got := s.run(t, again); got.out != "base\n" || got.Exit != (sandbox.Exit{}) {
			t.Errorf("%+v", got)
		}
	})
}
