package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/stamp"
	"sallyport/internal/path/session"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
	"sallyport/internal/port/sandbox"
)

func TestMain(m *testing.M) { wt.Main(m) }

// scene is a workspace to be watched: an overlay, or a plain copy.
type scene struct {
	session.Watched
	tree sandbox.Tree
	dir  string
}

// stage makes a workspace on a base of files.
func stage(t testing.TB, overlay bool, files map[string]string) scene {
	t.Helper()
	dir := t.TempDir()
	s := scene{dir: dir, Watched: session.Watched{Change: "chg-00000001", Base: []string{dir + "/base"}, Overlay: overlay, Log: dir + "/logs/file-changes.jsonl"}}
	for _, d := range []string{"/base", "/upper", "/work"} {
		must(t, os.Mkdir(dir+d, 0o755))
	}
	s.Side = dir + "/upper"
	for path, text := range files {
		put(t, filepath.Join(s.Base[0], path), text)
		if !overlay {
			put(t, filepath.Join(s.Side, path), text)
		}
	}
	s.tree = sandbox.Tree{Layers: s.Base, Upper: s.Side, Work: dir + "/work"}
	if !overlay {
		s.tree = sandbox.Tree{Dir: s.Side}
	}
	return s
}

// eachSide runs a test on an overlay and on a copy.
func eachSide(t *testing.T, do func(t *testing.T, overlay bool)) {
	t.Run("overlay", func(t *testing.T) {
		wt.CanOverlay(t)
		do(t, true)
	})
	t.Run("copy", func(t *testing.T) {
		wt.CanOverlay(t) // edits need the same rights
		do(t, false)
	})
}

// edit does what an agent would, inside.
func (s scene) edit(t testing.TB, ops ...wt.Op) {
	t.Helper()
	wt.Edit(t, workspace.Workspace{Tree: s.tree}, ops...)
}

func start(t testing.TB, s session.Watched) *session.Watch {
	t.Helper()
	w, err := session.StartWatch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// until waits for a condition.
func until(t testing.TB, what func() string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(3 * time.Minute)
	defer deadline.Stop()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatal(what())
		}
	}
}

// aged waits until what was staged is older than a watch that starts now. A kernel may stamp a file with more than the clock says that a watch
// looks at, by less than a step of it.
func aged(t testing.TB) {
	t.Helper()
	staged := stamp.Now()
	until(t, func() string { return "the clock stands" }, func() bool { return stamp.Now().After(staged.Add(20 * time.Millisecond)) })
}

// counted waits until exactly want has changed.
func counted(t testing.TB, w *session.Watch, want ...string) {
	t.Helper()
	slices.Sort(want)
	until(t, func() string { return fmt.Sprintf("changed %q, want %q; health %v", w.Changed(), want, w.Health()) },
		func() bool { return slices.Equal(w.Changed(), want) })
	if w.Count() != len(want) {
		t.Errorf("count %d, want %d", w.Count(), len(want))
	}
}

// logged reads the log; every line of it must be one JSON object.
func logged(t testing.TB, path string) []session.FileChange {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	var lines []session.FileChange
	for line := range bytes.Lines(data) {
		var c session.FileChange
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		lines = append(lines, c)
	}
	return lines
}

// lastKinds returns what the log says last of each path.
func lastKinds(t testing.TB, path string) map[string]string {
	kinds := map[string]string{}
	for _, c := range logged(t, path) {
		kinds[c.FilePath] = c.EventType
	}
	return kinds
}

func TestAWatchTellsWhatAnAgentDid(t *testing.T) {
	base := map[string]string{"a": "1", "d/x": "1", "d/y": "1", "d/e/z": "1", ".env": "1", "other/f": "1"}
	for name, c := range map[string]struct {
		ops  []wt.Op
		want map[string]string
	}{
		"a new file":             {[]wt.Op{wt.Write("n", "1")}, map[string]string{"n": "add"}},
		"a new deep file":        {[]wt.Op{wt.Write("d/e/f/g/n", "1")}, map[string]string{"d/e/f/g/n": "add"}},
		"an edit":                {[]wt.Op{wt.Write("a", "2")}, map[string]string{"a": "change"}},
		"a deep edit":            {[]wt.Op{wt.Write("d/e/z", "2")}, map[string]string{"d/e/z": "change"}},
		"a dotfile":              {[]wt.Op{wt.Write(".env", "2"), wt.Write(".github/w", "1")}, map[string]string{".env": "change", ".github/w": "add"}},
		"a mode":                 {[]wt.Op{wt.Chmod("a", 0o755)}, map[string]string{"a": "change"}},
		"a deletion":             {[]wt.Op{wt.Remove("a")}, map[string]string{"a": "unlink"}},
		"a deep deletion":        {[]wt.Op{wt.Remove("d/e/z")}, map[string]string{"d/e/z": "unlink"}},
		"a folder deleted":       {[]wt.Op{wt.Remove("d")}, map[string]string{"d/x": "unlink", "d/y": "unlink", "d/e/z": "unlink"}},
		"a file renamed":         {[]wt.Op{wt.Rename("a", "b")}, map[string]string{"a": "unlink", "b": "add"}},
		"a file over another":    {[]wt.Op{wt.Rename("a", "d/x")}, map[string]string{"a": "unlink", "d/x": "change"}},
		"deleted and made again": {[]wt.Op{wt.Remove("a"), wt.Write("a", "2")}, map[string]string{"a": "change"}},
		"a link":                 {[]wt.Op{wt.Symlink("l", "/etc")}, map[string]string{"l": "add"}},
		"a folder for a file":    {[]wt.Op{wt.Remove("a"), wt.Write("a/n", "1")}, map[string]string{"a": "unlink", "a/n": "add"}},
		"a file for a folder":    {[]wt.Op{wt.Remove("d"), wt.Write("d", "1")}, map[string]string{"d": "add", "d/x": "unlink", "d/y": "unlink", "d/e/z": "unlink"}},
		"a folder made anew":     {[]wt.Op{wt.Remove("d"), wt.Write("d/x", "2")}, map[string]string{"d/x": "change", "d/y": "unlink", "d/e/z": "unlink"}},
		"a new folder":           {[]wt.Op{wt.Mkdir("empty/folder"), wt.Write("empty/n", "1")}, map[string]string{"empty/n": "add"}},
		"a folder renamed":       {[]wt.Op{wt.Rename("d", "k")}, map[string]string{"d/x": "unlink", "d/y": "unlink", "d/e/z": "unlink", "k/x": "add", "k/y": "add", "k/e/z": "add"}},
		"another .git":           {[]wt.Op{wt.Write("d/.git/config", "1")}, map[string]string{"d/.git/config": "add"}},
		"not the agent's own":    {[]wt.Op{wt.Write(".git/index", "1"), wt.Write("n", "1")}, map[string]string{"n": "add"}},
	} {
		t.Run(name, func(t *testing.T) {
			eachSide(t, func(t *testing.T, overlay bool) {
				s := stage(t, overlay, base)
				w := start(t, s.Watched)
				s.edit(t, c.ops...)
				counted(t, w, slices.Collect(maps.Keys(c.want))...)
				must(t, w.Close())
				disktest.Private(t, filepath.Dir(s.Log), filepath.Base(s.Log)) // names of files say much
				if got := lastKinds(t, s.Log); !maps.Equal(got, c.want) {
					t.Errorf("logged %v, want %v", got, c.want)
				}
				if err := w.Health(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What is told does not depend on how many events one reading finds.
func TestAFolderInThePlaceOfAnotherIsCounted(t *testing.T) {
	base := map[string]string{"d/x": "1", "d/y": "1", "k/x": "2", "k/e/z": "2"}
	for _, held := range []bool{true, false} {
		eachSide(t, func(t *testing.T, overlay bool) {
			s := stage(t, overlay, base)
			aged(t) // what moves
			w := start(t, s.Watched)
			release := func() {}
			if held {
				release = w.Hold()
			}
			s.edit(t, wt.Exec("rm -r d && mv k d"))
			release()
			counted(t, w, "d/e/z", "d/x", "d/y", "k/e/z", "k/x")
			w.Reset("ckpt-001-aaaaaaaa")
			s.edit(t, wt.Write("d/e/z", "3"))
			counted(t, w, "d/e/z")
			must(t, w.Close())
			want := map[string]string{"d/e/z": "add", "d/x": "change", "d/y": "unlink", "k/e/z": "unlink", "k/x": "unlink"}
			if got := lastKinds(t, s.Log); !maps.Equal(got, want) {
				t.Errorf("logged %v, want %v", got, want)
			}
		})
	}
}

// A checkpoint that the host puts back takes entries out of the upper folder: the base shows again.
func TestWhatTheBaseShowsAgainIsCounted(t *testing.T) {
	wt.CanOverlay(t)
	s := stage(t, true, map[string]string{"d/x": "1", "d/e/z": "1", "k/f": "1"})
	w := start(t, s.Watched)
	s.edit(t, wt.Write("d/x", "2"), wt.Write("d/e/n", "2"), wt.Remove("k"))
	counted(t, w, "d/x", "d/e/n", "k/f")
	w.Reset("ckpt-001-aaaaaaaa")
	must(t, errors.Join(os.RemoveAll(s.Side+"/d"), os.Remove(s.Side+"/k")))
	counted(t, w, "d/x", "d/e/n", "k/f")
	must(t, w.Close())
	if got, want := lastKinds(t, s.Log), map[string]string{"d/x": "change", "d/e/n": "unlink", "k/f": "change"}; !maps.Equal(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

func TestEveryFileOfATreeMadeAtOnceIsCounted(t *testing.T) {
	eachSide(t, func(t *testing.T, overlay bool) {
		s := stage(t, overlay, map[string]string{"d/x": "1"})
		w := start(t, s.Watched)
		s.edit(t, wt.Exec(`for i in $(seq 40); do mkdir -p d/$i/a/b/c/e && : >d/$i/n && : >d/$i/a/b/n && : >d/$i/a/b/c/e/n; done`))
		var want []string
		for i := 1; i <= 40; i++ {
			want = append(want, fmt.Sprintf("d/%d/n", i), fmt.Sprintf("d/%d/a/b/n", i), fmt.Sprintf("d/%d/a/b/c/e/n", i))
		}
		counted(t, w, want...)
		if n := w.Stats().Folders; n < 200 {
			t.Errorf("%d folders are watched", n)
		}
		w.Reset("ckpt-001-aaaaaaaa")
		s.edit(t, wt.Rename("d/1", "moved"), wt.Remove("d/2"))
		counted(t, w, "d/1/n", "d/1/a/b/n", "d/1/a/b/c/e/n", "moved/n", "moved/a/b/n", "moved/a/b/c/e/n", "d/2/n", "d/2/a/b/n", "d/2/a/b/c/e/n")
		w.Reset("ckpt-002-aaaaaaaa")
		s.edit(t, wt.Write("moved/a/b/new", "1"))
		counted(t, w, "moved/a/b/new")
	})
}

func TestNothingIsCreditedToAnotherChange(t *testing.T) {
	eachSide(t, func(t *testing.T, overlay bool) {
		one, two := stage(t, overlay, map[string]string{"d/x": "1"}), stage(t, overlay, map[string]string{"d/x": "1"})
		next := one.Side + "2" // no part of one, whatever its name begins with
		must(t, os.Mkdir(next, 0o755))
		outside := t.TempDir()
		put(t, outside+"/there", "1")
		must(t, os.Symlink(outside, one.Side+"/out"))
		a, b := start(t, one.Watched), start(t, two.Watched)
		done := make(chan struct{})
		go func() {
			defer close(done)
			one.edit(t, wt.Exec(`for i in $(seq 50); do mkdir -p d/a$i; echo 1 >d/a$i/f; echo 1 >out/f$i || :; done; rm d/x`))
		}()
		two.edit(t, wt.Exec(`for i in $(seq 50); do mkdir -p d/b$i; echo 1 >d/b$i/f; done; echo 2 >d/x`))
		<-done
		put(t, next+"/f", "1")
		put(t, outside+"/f", "1")
		wantA, wantB := []string{"d/x"}, []string{"d/x"}
		for i := 1; i <= 50; i++ {
			wantA, wantB = append(wantA, fmt.Sprintf("d/a%d/f", i)), append(wantB, fmt.Sprintf("d/b%d/f", i))
		}
		counted(t, a, wantA...)
		counted(t, b, wantB...)
		must(t, errors.Join(a.Close(), b.Close()))
		for path := range lastKinds(t, one.Log) {
			if strings.HasPrefix(path, "d/b") {
				t.Errorf("%s is in the log of another change", path)
			}
		}
	})
}

func TestACheckpointBeginsTheCountAnew(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := stage(t, false, map[string]string{"a": "1"})
	s.Threshold = 2
	w := start(t, s.Watched)
	defer w.Close()
	crossed := func() bool {
		select {
		case <-w.Threshold():
			return true
		default:
			return false
		}
	}
	put(t, s.Side+"/a", "2")
	counted(t, w, "a")
	if crossed() {
		t.Error("one change crossed a threshold of two")
	}
	put(t, s.Side+"/b", "1")
	put(t, s.Side+"/c", "1")
	counted(t, w, "a", "b", "c")
	if !crossed() || crossed() {
		t.Error("a crossing is told once")
	}
	// What was done before a checkpoint is counted before it, read already or not.
	put(t, s.Side+"/late", "1")
	w.Reset("ckpt-001-aaaaaaaa")
	counted(t, w)
	put(t, s.Side+"/d", "1")
	put(t, s.Side+"/a", "3")
	counted(t, w, "a", "d")
	if !crossed() {
		t.Error("a checkpoint does not arm the threshold again")
	}
	must(t, w.Close())
	after := map[string]string{}
	for _, c := range logged(t, s.Log) {
		if c.CheckpointID != nil {
			after[c.FilePath] = string(*c.CheckpointID)
		}
		if c.Timestamp.IsZero() {
			t.Errorf("%s has no time", c.FilePath)
		}
	}
	if want := map[string]string{"a": "ckpt-001-aaaaaaaa", "d": "ckpt-001-aaaaaaaa"}; !maps.Equal(after, want) {
		t.Errorf("after the checkpoint: %v, want %v", after, want)
	}
}
