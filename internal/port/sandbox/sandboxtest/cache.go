package sandboxtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/port/sandbox"
)

func testCache(t *testing.T, s Setup) {
	layer := func(t *testing.T, files map[string]string) string {
		t.Helper()
		path := filepath.Join(s.Root, fmt.Sprintf("cache-layer-%d", serial.Add(1)))
		must(t, os.Mkdir(path, 0o755))
		for name, text := range files {
			must(t, os.WriteFile(filepath.Join(path, name), []byte(text), 0o644))
		}
		return path
	}
	above := func(t *testing.T, layers ...string) sandbox.Cache {
		t.Helper()
		dir, err := os.MkdirTemp(s.Root, "cache-")
		must(t, err)
		c := sandbox.Cache{Layers: layers, Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work")}
		t.Cleanup(func() { os.Chmod(filepath.Join(c.Work, "work"), 0o700) })
		for _, own := range []string{c.Upper, c.Work} {
			must(t, os.Mkdir(own, 0o755))
			s.give(t, own)
		}
		return c
	}
	t.Run("the layers are seen as one, the later one first, and what is written goes above them", func(t *testing.T) {
		low, high := layer(t, map[string]string{"a": "low\n", "b": "low\n"}), layer(t, map[string]string{"b": "high\n"})
		spec := s.Spec(t, "cd "+sandbox.Caches+` && cat a b && echo mine > a && rm b && echo new > c && cat a c && ls`)
		spec.Cache = above(t, low, high)
		if got := s.run(t, spec); got.out != "low\nhigh\nmine\nnew\na\nc\n" || got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		for path, want := range map[string]string{low + "/a": "low\n", low + "/b": "low\n", high + "/b": "high\n", spec.Cache.Upper + "/a": "mine\n"} {
			if text, err := os.ReadFile(path); err != nil || string(text) != want {
				t.Errorf("%s holds %q, %v", path, text, err)
			}
		}
		next := s.Spec(t, "cat "+sandbox.Caches+"/*")
		next.Cache = above(t, low, high)
		if got := s.run(t, next); got.out != "low\nhigh\n" {
			t.Errorf("the next one sees %+v", got)
		}
	})
	t.Run("there may be no layer", func(t *testing.T) {
		spec := s.Spec(t, "ls -A "+sandbox.Caches+" && echo made > "+sandbox.Caches+"/f")
		spec.Cache = above(t)
		got := s.run(t, spec)
		if text, err := os.ReadFile(filepath.Join(spec.Cache.Upper, "f")); got.out != "" || got.Code != 0 || err != nil || string(text) != "made\n" {
			t.Errorf("%+v: %q, %v", got, text, err)
		}
	})
	t.Run("without one there is no such folder", func(t *testing.T) {
		if got := s.run(t, s.Spec(t, "test ! -e "+sandbox.Caches)); got.Code != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what is written there counts toward the limit of the disk", func(t *testing.T) {
		spec := s.Spec(t, "head -c 20000000 /dev/zero > "+sandbox.Caches+"/f; sleep 1000")
		spec.Cache = above(t)
		spec.Limits.DiskBytes = 8 << 20
		if got := s.run(t, spec); got.Limit == nil || got.Limit.Name != sandbox.Disk {
			t.Errorf("%+v %+v", got, got.Limit)
		}
	})
	t.Run("what runs in the background lets everything else go first", func(t *testing.T) {
		spec := s.Spec(t, "nice")
		spec.Background = true
		if got := s.run(t, spec); got.out != "19\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a layer without a place to write is refused", func(t *testing.T) {
		spec := s.Spec(t, "true")
		spec.Cache = sandbox.Cache{Layers: []string{layer(t, nil)}}
		if p, err := s.Driver.Start(t.Context(), spec); err == nil {
			p.Kill()
			_, _ = p.Wait()
			t.Error("it was started")
		}
	})
}
