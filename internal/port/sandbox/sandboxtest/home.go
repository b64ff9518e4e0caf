package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

func testHome(t *testing.T, s Setup) {
	folder := func(t *testing.T) string {
		path := filepath.Join(s.Root, fmt.Sprintf("home-%d", serial.Add(1)))
		must(t, os.Mkdir(path, 0o700))
		return path
	}
	t.Run("what is kept there is there again, and belongs to the sandbox", func(t *testing.T) {
		home := folder(t)
		for i, want := range []string{"none\n", "one\n"} {
			spec := s.Spec(t, `cat ~/.a/f || echo none; mkdir -p ~/.a && echo one > ~/.a/f; stat -c %a:%u ~ >&2`)
			spec.Home = home
			got := s.run(t, spec)
			if got.out != want || !strings.HasSuffix(got.err, "700:"+utoa(s.Owner.UID)+"\n") || got.Code != 0 {
				t.Errorf("run %d: %+v", i, got)
			}
		}
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(home, ".a/f"), &st))
		if st.Uid != s.Owner.UID {
			t.Errorf("it belongs to uid %d", st.Uid)
		}
	})
	t.Run("binds stand in it", func(t *testing.T) {
		spec := s.Spec(t, `cat ~/.cache/shown/f && ! touch ~/.cache/shown/g 2>/dev/null && touch ~/.cache/mine && rmdir ~/.cache/shown 2>/dev/null || echo kept`)
		spec.Home = folder(t)
		shown := filepath.Join(s.Root, "shown")
		must(t, os.Mkdir(shown, 0o755))
		must(t, os.WriteFile(filepath.Join(shown, "f"), []byte("f\n"), 0o644))
		spec.Binds = []sandbox.Bind{{Source: shown, Target: sandbox.Home + "/.cache/shown"}}
		for range 2 {
			if got := s.run(t, spec); got.out != "f\nkept\n" {
				t.Errorf("%+v", got)
			}
			again := s.Spec(t, spec.Argv[2])
			again.Home, again.Binds = spec.Home, spec.Binds
			spec = again
		}
	})
	t.Run("a link in the way of a bind leads nowhere", func(t *testing.T) {
		home := folder(t)
		out := filepath.Join(s.Root, "aim")
		must(t, os.Mkdir(out, 0o777))
		spec := s.Spec(t, `ln -s "$AIM" ~/.cache`)
		spec.Env = append(spec.Env, "AIM="+out)
		spec.Home = home
		if got := s.run(t, spec); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		spec = s.Spec(t, "true")
		spec.Home, spec.Binds = home, []sandbox.Bind{{Source: "/usr/share", Target: sandbox.Home + "/.cache/shown"}}
		p, err := s.Driver.Start(t.Context(), spec)
		if err == nil {
			p.Kill()
			_, _ = p.Wait()
			t.Error("it was started")
		} else if !strings.Contains(err.Error(), ".cache") {
			t.Error(err)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	})
	t.Run("it counts toward the limits, together with the workspace", func(t *testing.T) {
		need(t, "python3")
		for script, limit := range map[string]string{
			`for i in range(5): open("f%d"%i,"wb").write(bytes(1<<20)); open("/home/agent/f%d"%i,"wb").write(bytes(1<<20))`: sandbox.Disk,
			`for i in range(200): open("f%d"%i,"w").close(); open("/home/agent/f%d"%i,"w").close()`:                         sandbox.Files,
		} {
			spec := s.Spec(t, python(script, "time.sleep(1000)"))
			spec.Home = folder(t)
			spec.Limits.DiskBytes, spec.Limits.FilesMax = 8<<20, 300
			if got := s.run(t, spec); got.Limit == nil || got.Limit.Name != limit {
				t.Errorf("%s: %+v %+v", limit, got, got.Limit)
			}
		}
	})
	t.Run("what is no folder of ours is not shown", func(t *testing.T) {
		link := filepath.Join(s.Root, "link")
		must(t, os.Symlink(folder(t), link))
		for _, path := range []string{link, filepath.Join(s.Root, "absent")} {
			spec := s.Spec(t, "true")
			spec.Home = path
			if p, err := s.Driver.Start(t.Context(), spec); err == nil {
				p.Kill()
				_, _ = p.Wait()
				t.Errorf("%s: no error", path)
			}
		}
	})
}
