package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// theirs is who a shown folder belongs to, where this process can give files to others.
const theirs = 64077

func testExtra(t *testing.T, s Setup) {
	folder := func(t *testing.T) string {
		t.Helper()
		path := filepath.Join(s.Root, fmt.Sprintf("extra-%d", serial.Add(1)))
		must(t, os.Mkdir(path, 0o700))
		must(t, os.WriteFile(filepath.Join(path, "f"), []byte("theirs\n"), 0o600))
		if os.Geteuid() == 0 {
			must(t, os.Lchown(path, theirs, theirs))
			must(t, os.Lchown(filepath.Join(path, "f"), theirs, theirs))
		}
		return path
	}
	mount := func(t *testing.T, path string, writable bool) sandbox.Mount {
		t.Helper()
		at, err := sandbox.LookAt(path)
		must(t, err)
		return sandbox.Mount{Source: at.Real, Dev: at.Dev, Ino: at.Ino, Of: at.Of, Target: sandbox.Extra + "/notes", Writable: writable}
	}
	t.Run("a folder that only its owner may enter is read, and nothing of it is written", func(t *testing.T) {
		path := folder(t)
		spec := s.Spec(t, `cd /extra/notes && cat f; echo x 2>/dev/null > g || echo kept; echo x 2>/dev/null > f || echo kept; rm -f f 2>/dev/null || echo kept; chmod 777 f 2>/dev/null || echo kept; ls /extra`)
		spec.Mounts = []sandbox.Mount{mount(t, path, false)}
		if got := s.run(t, spec); got.out != "theirs\nkept\nkept\nkept\nkept\nnotes\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what is written is its owner's", func(t *testing.T) {
		path := folder(t)
		before, err := sandbox.LookAt(path)
		must(t, err)
		spec := s.Spec(t, `cd /extra/notes && echo more >> f && mkdir d && echo new > d/g && chmod 755 d/g && stat -c %u f d/g`)
		spec.Mounts = []sandbox.Mount{mount(t, path, true)}
		if got, me := s.run(t, spec), utoa(s.Owner.UID); got.out != me+"\n"+me+"\n" {
			t.Errorf("%+v", got)
		}
		for name, want := range map[string]string{"f": "theirs\nmore\n", "d/g": "new\n"} {
			text, err := os.ReadFile(filepath.Join(path, name))
			var st unix.Stat_t
			if must(t, unix.Lstat(filepath.Join(path, name), &st)); err != nil || string(text) != want || st.Uid != before.Of.UID || st.Gid != before.Of.GID {
				t.Errorf("%s holds %q of uid %d, %v", name, text, st.Uid, err)
			}
		}
	})
	t.Run("nothing that is written runs with its owner's rights", func(t *testing.T) {
		need(t, "python3")
		path := folder(t)
		// openat2 keeps its mode in memory: it is not there.
		spec := s.Spec(t, `/usr/bin/python3 -c '
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
os.chdir("/extra/notes")
def call(n, *args):
    if libc.syscall(n, *args) < 0: raise OSError(ctypes.get_errno(), "no")
how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0)
ways = [lambda m: os.chmod("f", m), lambda m: os.fchmod(os.open("f", os.O_RDWR), m), lambda m: os.chmod("f", m, dir_fd=os.open(".", os.O_RDONLY)),
  lambda m: call(452, -100, b"f", m, 0), lambda m: os.open("a%o" % m, os.O_CREAT | os.O_WRONLY, m), lambda m: call(133, b"b", 0o100000 | m, 0),
  lambda m: os.mknod("c%o" % m, 0o100000 | m), lambda m: call(85, b"d", m), lambda m: os.open(".", os.O_TMPFILE | os.O_WRONLY, m), lambda m: call(437, -100, b"e", how, 24)]
for i, way in enumerate(ways):
    for mode in (0o4755, 0o2755):
        try: way(mode); print("made", i, oct(mode))
        except OSError: pass
os.chmod("f", 0o755); os.close(os.open("plain", os.O_CREAT | os.O_WRONLY, 0o755)); print(oct(os.stat("f").st_mode))'`)
		spec.Mounts = []sandbox.Mount{mount(t, path, true)}
		if got := s.run(t, spec); got.out != "0o100755\n" {
			t.Errorf("%+v", got)
		}
		must(t, filepath.Walk(path, func(name string, info os.FileInfo, err error) error {
			if err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				t.Errorf("%s: %v", name, info.Mode())
			}
			return err
		}))
	})
	t.Run("a link, or another folder, in its place is not shown", func(t *testing.T) {
		for name, swap := range map[string]func(path string) error{
			"it is gone":    func(path string) error { return os.RemoveAll(path) },
			"a link":        func(path string) error { return os.Rename(path, path+".old") },
			"another one":   func(path string) error { return os.Rename(path, path+".old") },
			"another owner": func(path string) error { return nil },
		} {
			path := folder(t)
			spec := s.Spec(t, "true")
			spec.Mounts = []sandbox.Mount{mount(t, path, false)}
			must(t, swap(path))
			switch name {
			case "a link":
				must(t, os.Symlink(path+".old", path))
			case "another one":
				must(t, os.Mkdir(path, 0o700))
				must(t, os.Lchown(path, int(spec.Mounts[0].Of.UID), int(spec.Mounts[0].Of.GID)))
			case "another owner":
				spec.Mounts[0].Of.UID++
			}
			if p, err := s.Driver.Start(t.Context(), spec); err == nil {
				p.Kill()
				_, _ = p.Wait()
				t.Errorf("%s: it was started", name)
			}
		}
	})
	t.Run("a link on the way to it is not followed", func(t *testing.T) {
		path := folder(t)
		must(t, os.Mkdir(filepath.Join(path, "in"), 0o755))
		link := path + ".link"
		must(t, os.Symlink(path, link))
		spec := s.Spec(t, "true")
		spec.Mounts = []sandbox.Mount{mount(t, filepath.Join(path, "in"), false)}
		spec.Mounts[0].Source = filepath.Join(link, "in")
		if p, err := s.Driver.Start(t.Context(), spec); err == nil {
			p.Kill()
			_, _ = p.Wait()
			t.Error("it was started")
		}
	})
	t.Run("what is written counts toward the limit of the disk, and what was there does not", func(t *testing.T) {
		path := folder(t)
		must(t, os.WriteFile(filepath.Join(path, "old"), make([]byte, 12<<20), 0o600))
		for script, limit := range map[string]string{"true": "", "head -c 12000000 /dev/zero > /extra/notes/new && sleep 1000": sandbox.Disk} {
			spec := s.Spec(t, script)
			spec.Mounts, spec.Limits.DiskBytes = []sandbox.Mount{mount(t, path, true)}, 8<<20
			got := s.run(t, spec)
			if got.Limit == nil && limit != "" || got.Limit != nil && got.Limit.Name != limit {
				t.Errorf("%s: %+v %+v", script, got, got.Limit)
			}
		}
	})
	t.Run("it has a name in its folder and no other place", func(t *testing.T) {
		path := folder(t)
		for _, target := range []string{"/workspace", "/extra", "/extra/../usr", "/extra/a/b", "/etc/x", "notes"} {
			spec := s.Spec(t, "true")
			spec.Mounts = []sandbox.Mount{mount(t, path, false)}
			spec.Mounts[0].Target = target
			if p, err := s.Driver.Start(t.Context(), spec); err == nil {
				p.Kill()
				_, _ = p.Wait()
				t.Errorf("%s: it was started", target)
			}
		}
	})
}
