package session_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// flood renames a file back and forth until the kernel's queue has been full.
func flood(t *testing.T, side string) {
	t.Helper()
	data, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	var queued int
	_, err = fmt.Sscan(string(data), &queued)
	must(t, err)
	if queued > 100_000 {
		t.Skipf("fs.inotify.max_queued_events is %d: a flood of that many events is no test", queued)
	}
	put(t, side+"/flood", "1")
	for range queued/2 + 10 {
		must(t, os.Rename(side+"/flood", side+"/flooded"))
		must(t, os.Rename(side+"/flooded", side+"/flood"))
	}
}

func TestEventsThatAreLostDoNoHarm(t *testing.T) {
	s := stage(t, false, map[string]string{"a": "1", "d/x": "1", "old": "1"})
	var most, longest atomic.Int64
	s.Handled = func(events int, took time.Duration) {
		most.Store(max(most.Load(), int64(events)))
		longest.Store(max(longest.Load(), int64(took)))
	}
	w := start(t, s.Watched)
	release := w.Hold()
	flood(t, s.Side)
	put(t, s.Side+"/a", "2")
	put(t, s.Side+"/new/deep/n", "1")
	must(t, os.Rename(s.Side+"/d", s.Side+"/k"))
	release()
	until(t, func() string { return "it never told" }, func() bool { return w.Health() != nil })
	until(t, func() string { return fmt.Sprintf("changed %q", w.Changed()) }, func() bool {
		c := w.Changed()
		return slices.Contains(c, "a") && slices.Contains(c, "new/deep/n") && slices.Contains(c, "flood")
	})
	if slices.Contains(w.Changed(), "old") {
		t.Error("what nobody touched has changed")
	}
	if err := w.Health(); err == nil || !strings.Contains(err.Error(), "events were lost") {
		t.Errorf("health %v", err)
	}
	if most.Load() < 1000 || longest.Load() == 0 {
		t.Errorf("it told of readings of %d events and %s", most.Load(), time.Duration(longest.Load()))
	}
	w.Reset("")
	if err := w.Health(); err != nil {
		t.Errorf("after a checkpoint: health %v", err)
	}
	// What appeared while nobody was told of it is watched from then on, also where a folder has moved to.
	put(t, s.Side+"/new/deep/m", "1")
	put(t, s.Side+"/k/x", "2")
	counted(t, w, "k/x", "new/deep/m")
}

func TestACheckpointAfterLostEventsCountsThemBefore(t *testing.T) {
	s := stage(t, false, map[string]string{"a": "1"})
	w := start(t, s.Watched)
	release := w.Hold()
	flood(t, s.Side)
	put(t, s.Side+"/a", "2")
	release()
	w.Reset("ckpt-001-aaaaaaaa")
	put(t, s.Side+"/after", "1")
	counted(t, w, "after")
}

func TestAFolderThatIsRemovedIsNotWatchedAnyMore(t *testing.T) {
	s := stage(t, false, map[string]string{"a": "1"})
	w := start(t, s.Watched)
	for i := range 20 {
		put(t, s.Side+"/d/e/f", "1")
		counted(t, w, "d/e/f")
		until(t, func() string { return fmt.Sprintf("%+v", w.Stats()) }, func() bool { return w.Stats().Folders == 3 })
		must(t, os.RemoveAll(s.Side+"/d"))
		until(t, func() string { return fmt.Sprintf("round %d: %+v", i, w.Stats()) }, func() bool { return w.Stats().Folders == 1 })
	}
	// One that leaves is not followed to where it goes.
	put(t, s.Side+"/d/e/f", "1")
	counted(t, w, "d/e/f")
	must(t, os.Rename(s.Side+"/d", s.dir+"/away"))
	put(t, s.Side+"/b", "1")
	until(t, func() string { return fmt.Sprintf("%+v", w.Stats()) }, func() bool { return w.Stats().Folders == 1 })
	w.Reset("")
	put(t, s.dir+"/away/e/f", "2")
	put(t, s.Side+"/a", "2")
	counted(t, w, "a")
	if err := w.Health(); err != nil {
		t.Error(err)
	}
	must(t, os.RemoveAll(s.Side))
	if err := w.Check(t.Context()); err == nil || w.Health() == nil {
		t.Errorf("the workspace has gone: check %v, health %v", err, w.Health())
	}
	must(t, w.Close())
}

func TestNamesThatAreNoTextAreLoggedAsText(t *testing.T) {
	s := stage(t, false, nil)
	w := start(t, s.Watched)
	names := []string{"new\nline", "bad\xff\xfe", "tab\t\"quote\"", "\x1b[31m", "d\xff/f"}
	for _, n := range names {
		put(t, filepath.Join(s.Side, n), "12345")
	}
	counted(t, w, slices.Clone(names)...)
	must(t, w.Close())
	kinds := lastKinds(t, s.Log)
	for _, n := range []string{"new\nline", `bad\xff\xfe`, "tab\t\"quote\"", "\x1b[31m", `d\xff/f`} {
		if kinds[n] != "add" {
			t.Errorf("%q is not in the log: %q", n, kinds)
		}
	}
	data, err := os.ReadFile(s.Log)
	must(t, err)
	if bytes.ContainsAny(data, "\x1b\xff\xfe\t") {
		t.Errorf("the log holds what a terminal obeys: %q", data)
	}
}

func TestALogThatIsFullSaysSoOnce(t *testing.T) {
	s := stage(t, false, nil)
	s.LogBytesMax = 1000
	for range 2 { // and not again by the next watch
		w := start(t, s.Watched)
		var want []string
		for i := range 20 {
			name := fmt.Sprintf("file%d", i)
			put(t, filepath.Join(s.Side, name), "1")
			want = append(want, name)
		}
		counted(t, w, want...)
		must(t, w.Close())
		lines := logged(t, s.Log)
		if n := len(lines); n < 3 || lines[n-1].EventType != "full" || lines[n-2].EventType == "full" {
			t.Errorf("log ends in %+v", lines[max(0, n-2):])
		}
		if info, err := os.Stat(s.Log); err != nil || info.Size() > s.LogBytesMax {
			t.Errorf("%d bytes, %v", info.Size(), err)
		}
	}
}

func TestALogThatACrashLeftHalfGoesOnWithAWholeLine(t *testing.T) {
	s := stage(t, false, nil)
	put(t, s.Log, `{"timestamp":"2026-03-04T05:06:07Z","event_ty`)
	w := start(t, s.Watched)
	put(t, s.Side+"/a", "1")
	counted(t, w, "a")
	must(t, w.Close())
	data, err := os.ReadFile(s.Log)
	must(t, err)
	half, rest, _ := bytes.Cut(data, []byte("\n"))
	must(t, os.WriteFile(s.Log, rest, 0o600))
	if lines := logged(t, s.Log); len(lines) == 0 || !bytes.HasSuffix(half, []byte("event_ty")) {
		t.Errorf("log %q", data)
	}
}

func TestALogThatCannotBeWrittenIsToldAndDoesNoHarm(t *testing.T) {
	full := errors.New("no space left")
	fail := false
	s := stage(t, false, nil)
	s.Ops = disk.Ops{Around: func(op string, do func() error) error {
		if fail && op == "watchlog:append" {
			return full
		}
		return do()
	}}
	w := start(t, s.Watched)
	release := w.Hold()
	fail = true
	put(t, s.Side+"/a", "1") // its three events are read at once, all while the log cannot be written
	release()
	until(t, func() string { return "it was never told" }, func() bool { return w.Health() != nil })
	counted(t, w, "a")
	release = w.Hold()
	fail = false
	release()
	put(t, s.Side+"/b", "1")
	until(t, func() string { return "it was never well again" }, func() bool { return w.Health() == nil })
	must(t, w.Close())
	if got := lastKinds(t, s.Log); got["b"] != "add" || got["a"] != "" {
		t.Errorf("logged %v", got)
	}
}

func TestFoldersThatCannotBeWatchedAreTold(t *testing.T) {
	t.Run("too many", func(t *testing.T) {
		s := stage(t, false, nil)
		s.FoldersMax = 3
		w := start(t, s.Watched)
		for i := range 5 {
			put(t, fmt.Sprintf("%s/d%d/f", s.Side, i), "1")
		}
		until(t, func() string { return "it was never told" }, func() bool {
			err := w.Health()
			return err != nil && strings.Contains(err.Error(), "more than 3 folders")
		})
		if n := w.Stats().Folders; n > 3 {
			t.Errorf("%d folders are watched", n)
		}
	})
	t.Run("closed by their owner", func(t *testing.T) {
		s := stage(t, false, map[string]string{"d/x": "1"})
		must(t, os.Chmod(s.Side+"/d", 0))
		t.Cleanup(func() { os.Chmod(s.Side+"/d", 0o755) })
		aged(t) // what is behind the closed door
		w := start(t, s.Watched)
		if err := w.Health(); os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), `"d"`)) {
			t.Errorf("health %v", err)
		}
		put(t, s.Side+"/a", "1")
		counted(t, w, "a")
		must(t, os.Chmod(s.Side+"/d", 0o755)) // opened again, it is watched
		until(t, func() string { return "still not watched" }, func() bool { return w.Stats().Folders == 2 })
		put(t, s.Side+"/d/y", "1")
		counted(t, w, "a", "d/y")
	})
}

func TestAWatchLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(entries)
	}
	s := stage(t, false, map[string]string{"d/e/f": "1"})
	must(t, start(t, s.Watched).Close()) // the runtime's own poller opens with the first
	before := open()
	for range 5 {
		w := start(t, s.Watched)
		put(t, s.Side+"/d/e/g", "1")
		must(t, w.Check(t.Context()))
		must(t, errors.Join(w.Close(), w.Close()))
		w.Reset("ckpt-001-aaaaaaaa")
		if err := w.Check(t.Context()); err == nil {
			t.Error("a closed watch is well")
		}
	}
	failing := s.Watched
	failing.Log = s.Log + "/log" // in what is no folder
	if _, err := session.StartWatch(t.Context(), failing); err == nil {
		t.Error("a watch without a log began")
	}
	failing = s.Watched
	failing.Ops = disk.Ops{Around: func(op string, do func() error) error {
		if op == "watchtest:touch" {
			return errors.New("power is out")
		}
		return do()
	}}
	if _, err := session.StartWatch(t.Context(), failing); err == nil {
		t.Error("a watch began without its test")
	}
	if after := open(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	entries, err := os.ReadDir(filepath.Dir(s.Log))
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("beside the log: %v", entries)
	}
}

// TestHardlyAnythingThatTheTreeShowsIsMissed does what agents do at random, all at once, and
// compares the trees afterwards. A watch is added to a folder after the folder is there, so what is moved
// through several new ones in an instant can slip by: the walk of the tree, which decides, finds it.
func TestHardlyAnythingThatTheTreeShowsIsMissed(t *testing.T) {
	eachSide(t, func(t *testing.T, overlay bool) {
		changed, slipped, wrong := 0, []string(nil), []string(nil)
		for seed := range uint64(8) {
			files := map[string]string{}
			for i := range 30 {
				files[fmt.Sprintf("d%d/e%d/f%d", i%3, i%2, i)] = "1"
			}
			s := stage(t, overlay, files)
			w := start(t, s.Watched)
			before := contents(t, s.Base[0])
			for part := range uint64(2) {
				copied := t.TempDir()
				wt.Try(t, workspace.Workspace{Tree: s.tree}, copied, edits(10*seed+part, 400)...)
				after := contents(t, copied)
				for range 2 { // once all that came before it is handled
					must(t, w.Check(t.Context()))
				}
				paths := differing(before, after)
				changed += len(paths)
				slipped = append(slipped, tops(fmt.Sprintf("seed %d, part %d: ", seed, part), paths, func(path string) bool { return !slices.Contains(w.Changed(), path) })...)
				w.Reset("")
				before = after
			}
			must(t, w.Close())
			logged := lastKinds(t, s.Log)
			wrong = append(wrong, tops(fmt.Sprintf("seed %d: ", seed), logged, func(path string) bool { // the log's last word on it is not what the tree has
				_, there := before[path]
				return there == (logged[path] == "unlink")
			})...)
			if err := w.Health(); err != nil {
				t.Error(err)
			}
		}
		if t.Logf("%d of %d slipped by: %q", len(slipped), changed, slipped); changed < 100 || len(slipped)*100 > changed {
			t.Errorf("%d of %d changes were not counted", len(slipped), changed)
		}
		if t.Logf("logged wrong: %q", wrong); len(wrong)*100 > changed {
			t.Errorf("the log is wrong in the end about %d of %d paths", len(wrong), changed)
		}
	})
}

// tops names the paths that are bad; a folder all of whose paths are is named in their place, for one move of it is one fault.
func tops[V any](what string, paths map[string]V, bad func(path string) bool) []string {
	mixed := map[string]bool{".": true} // folders with a path that is not
	for path := range paths {
		for at := filepath.Dir(path); !bad(path) && at != "."; at = filepath.Dir(at) {
			mixed[at] = true
		}
	}
	found := map[string]bool{}
	for path := range paths {
		at := path
		for !mixed[filepath.Dir(at)] {
			at = filepath.Dir(at)
		}
		if bad(path) {
			found[what+at] = true
		}
	}
	return slices.Collect(maps.Keys(found))
}

// contents returns what a folder holds, by path.
func contents(t *testing.T, top string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		at := strings.TrimPrefix(path, top+"/")
		if d.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			found[at] = "-> " + target
			return err
		}
		data, err := os.ReadFile(path)
		found[at] = string(data)
		return err
	}))
	return found
}

// differing returns the paths that two trees have differently.
func differing(a, b map[string]string) map[string]bool {
	found := map[string]bool{}
	for path, text := range a {
		if other, ok := b[path]; !ok || other != text {
			found[path] = true
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			found[path] = true
		}
	}
	return found
}

func edits(seed uint64, n int) []wt.Op {
	r := rand.New(rand.NewPCG(seed, 1))
	path := func() string {
		p := fmt.Sprintf("d%d", r.IntN(4))
		for _, part := range []string{"e", "f", "g"} {
			if r.IntN(3) > 0 {
				p += fmt.Sprintf("/%s%d", part, r.IntN(3))
			}
		}
		return p
	}
	var ops []wt.Op
	for i := range n {
		switch r.IntN(8) {
		case 0:
			ops = append(ops, wt.Remove(path()))
		case 1, 2:
			ops = append(ops, wt.Rename(path(), path()))
		case 3:
			ops = append(ops, wt.Mkdir(path()))
		case 4:
			ops = append(ops, wt.Symlink(path(), path()))
		default:
			ops = append(ops, wt.Write(path(), fmt.Sprintf("%d.%d", seed, i)))
		}
	}
	return ops
}

func FuzzEventsAreDecodedWithinTheirBytes(f *testing.F) {
	encode := func(name string) []byte {
		data := make([]byte, unix.SizeofInotifyEvent+len(name))
		binary.NativeEndian.PutUint32(data[12:], uint32(len(name)))
		copy(data[unix.SizeofInotifyEvent:], name)
		return data
	}
	f.Add(encode("a\x00\x00\x00"))
	f.Add(append(encode("a\x00"), encode("")...))
	f.Add(encode("a")[:10])
	f.Add([]byte{12: 0xff, 13: 0xff, 14: 0xff, 15: 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		events, names := session.DecodeEvents(data)
		if events*unix.SizeofInotifyEvent+names > len(data) {
			t.Errorf("%d events with %d bytes of names in %d bytes", events, names, len(data))
		}
	})
}
