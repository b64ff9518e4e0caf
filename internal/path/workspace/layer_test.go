package workspace_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/rapidtest"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// history is one of a project, with workspaces on its commits.
type history struct {
	*wt.History
	t testing.TB
}

func newHistory(t testing.TB) *history {
	t.Helper()
	return &history{wt.NewHistory(t), t}
}

func (h *history) spec(change string, base git.OID) workspace.Spec {
	return workspace.Spec{Change: id.Change(change), Project: h.P, Base: base, Branch: "main", Owner: wt.Self()}
}

func (h *history) prepare(m *workspace.Manager, change string, base git.OID) workspace.Workspace {
	h.t.Helper()
	w, err := m.Prepare(gittest.Context(h.t), h.spec(change, base))
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

func layers(t testing.TB, m *workspace.Manager) []layer.Info {
	t.Helper()
	found, err := m.Layers.All(gittest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func layerOf(t testing.TB, m *workspace.Manager, h *history, commit git.OID) layer.Info {
	t.Helper()
	tree, err := h.Host.Tree(gittest.Context(t), commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers(t, m) {
		if l.Tree == tree {
			return l
		}
	}
	return layer.Info{}
}

func evictAll(t testing.TB, m *workspace.Manager) int64 {
	t.Helper()
	freed, err := m.Layers.Evict(gittest.Context(t), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return freed
}

// appearance has the sandbox's view of a workspace as text: kind, mode, size and target of every entry,
// what is in every file, and which files its index does not know to be as they are.
const appearance = `find . -mindepth 1 -path ./.git -prune -o -mindepth 1 -printf '%P %y %m %l\0' | sort -z | tr '\0' '@'
find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0r sha1sum
find . -path ./.git -prune -o -type f -printf '%s\n' | sort | uniq -c
git diff-files --name-only; git diff-index --cached HEAD; find . -path ./.git -prune -o -type f -links +1 -print; git ls-files -t | sed /^H/d`

// anyTree draws a tree: no path is a file and a folder at once.
func anyTree(r *rapid.T, label string, from map[string]string) map[string]string {
	files := maps.Clone(from)
	if files == nil || rapid.IntRange(0, 5).Draw(r, label+" anew") == 0 {
		files = map[string]string{"stays": "1"}
	}
	for range rapid.IntRange(1, 12).Draw(r, label) {
		p := anyPath(r, label+" path")
		if rapid.IntRange(0, 2).Draw(r, label+" remove") == 0 {
			maps.DeleteFunc(files, func(f, _ string) bool { return f == p || strings.HasPrefix(f, p+"/") })
			continue
		}
		maps.DeleteFunc(files, func(f, _ string) bool {
			return strings.HasPrefix(f, p+"/") || strings.HasPrefix(p, f+"/")
		})
		files[p] = rapid.SampledFrom([]string{"", "a\n", "x+a\n", "->a", "->../x", "\x00\xff", "*.o\nx\n", "x+*"}).Draw(r, label+" text")
	}
	return files
}

// often bounds the cases of a rapid test that starts many processes.
func often() int {
	if os.Getenv("SALLYPORT_LONG") != "" {
		return 1000
	}
	if testing.Short() {
		return 3
	}
	return 6
}

// A base made of what differs from others is, to all who look, one that was checked out whole.
func TestAWorkspaceOnADeltaIsTheOneOnAFullBase(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		plain := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "plain"), Strategy: m.Strategy()})
		h := newHistory(t)
		n, deepest := 0, 0
		rapidtest.Check(t, func(r *rapid.T) {
			if n++; n > often() {
				return
			}
			change := fmt.Sprintf("chg-%08d", n)
			defer func() {
				for _, left := range []id.Change{id.Change(change), id.Change(change + "-2"), id.Change(change + "-3"), id.Change(change + "-4")} {
					for _, m := range []*workspace.Manager{m, plain} {
						if err := m.Remove(gittest.Context(t), left); err != nil {
							t.Error(err)
						}
					}
				}
			}()
			files := anyTree(r, "tree 1", nil)
			for i := 2; i < 5; i++ {
				h.prepare(m, fmt.Sprintf("%s-%d", change, i), h.Commit(files))
				files = anyTree(r, fmt.Sprint("tree ", i), files)
			}
			commit := h.Commit(files)
			delta := h.prepare(m, change, commit)
			evictAll(t, plain)
			full := h.prepare(plain, change, commit)
			deepest = max(deepest, layerOf(t, m, h, commit).Depth)
			if d := layerOf(t, plain, h, commit).Depth; d != 1 {
				r.Fatalf("the full base has depth %d", d)
			}
			if got, want := wt.Edit(t, delta, wt.Exec(appearance)), wt.Edit(t, full, wt.Exec(appearance)); got != want {
				r.Fatalf("the delta looks like\n%s\nthe full base like\n%s", got, want)
			}
			edits := anyEdits(r)
			wt.Try(t, delta, filepath.Join(t.TempDir(), change), edits...)
			wt.Try(t, full, filepath.Join(t.TempDir(), change), edits...)
			got, want := walked(t, m, delta), walked(t, plain, full)
			if !reflect.DeepEqual(got, want) {
				r.Fatalf("on the delta the walk finds\n%+v\non the full base\n%+v", got, want)
			}
		})
		if deepest < 2 {
			t.Errorf("no more than %d layers stood on each other", deepest)
		}
	})
}

// walked is what a walk finds, without times.
func walked(t *testing.T, m *workspace.Manager, w workspace.Workspace) workspace.Diff {
	t.Helper()
	d, err := m.Walk(gittest.Context(t), w)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Changes {
		d.Changes[i].At = 0
	}
	return d
}

func TestLayersDoNotStandOnEachOtherWithoutEnd(t *testing.T) {
	for _, s := range []workspace.Strategy{workspace.Overlay, workspace.Reflink} {
		t.Run(string(s), func(t *testing.T) {
			if s == workspace.Overlay {
				wt.CanOverlay(t)
			}
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "s"), Strategy: s})
			h := newHistory(t)
			files := wt.Many(100)
			var depths []int
			var w workspace.Workspace
			for i := range 23 {
				files[fmt.Sprintf("n%d/new", i)] = "1"
				delete(files, fmt.Sprintf("d%d/e0/f%d", i, i))
				delete(files, fmt.Sprintf("n%d/new", i-2))
				commit := h.Commit(files)
				w = h.prepare(m, fmt.Sprintf("chg-%08d", i), commit)
				depths = append(depths, layerOf(t, m, h, commit).Depth)
			}
			if deepest := slices.Max(depths); deepest > 5 || depths[len(depths)-1] < 2 {
				t.Errorf("depths %v", depths) // no base is copied as a whole, and none stands on all that came before
			}
			got := strings.Split(wt.Edit(t, w, wt.Exec("find . -path ./.git -prune -o -type f -print | sort; git status --porcelain")), "\n")
			var want []string
			for name := range files {
				want = append(want, "./"+name)
			}
			slices.Sort(want)
			if !slices.Equal(got, append(want, "")) {
				t.Errorf("shows %q, want %q", got, want)
			}
		})
	}
}

func TestALayerThatSomethingStandsOnIsNeverEvicted(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	h := newHistory(t)
	files := wt.Many(10)
	var commits []git.OID
	for i := range 3 {
		files["new"] = strings.Repeat("x", i)
		commits = append(commits, h.Commit(files))
		h.prepare(m, fmt.Sprintf("chg-%08d", i), commits[i])
	}
	there := func() (depths []int) {
		for _, c := range commits {
			depths = append(depths, layerOf(t, m, h, c).Depth)
		}
		return depths
	}
	remove := func(i int) {
		t.Helper()
		if err := m.Remove(gittest.Context(t), id.Change(fmt.Sprintf("chg-%08d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if freed := evictAll(t, m); freed != 0 || !slices.Equal(there(), []int{1, 2, 3}) {
		t.Fatalf("freed %d, left %v", freed, there())
	}
	remove(0)
	remove(1)
	if evictAll(t, m); !slices.Equal(there(), []int{1, 2, 3}) {
		t.Fatalf("layers below a workspace's were evicted: %v", there())
	}
	shown, err := m.Materialize(gittest.Context(t), h.spec("chg-00000001", commits[1]), commits[1])
	if err != nil {
		t.Fatal(err)
	}
	remove(2)
	if evictAll(t, m); !slices.Equal(there(), []int{1, 2, 0}) {
		t.Fatalf("with a throw-away workspace on the second: %v", there())
	}
	if err := m.Discard(gittest.Context(t), shown); err != nil {
		t.Fatal(err)
	}
	tree, err := h.Host.Tree(gittest.Context(t), commits[1])
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := m.Layers.Open(gittest.Context(t), h.Host, tree, "")
	if err != nil {
		t.Fatal(err)
	}
	if evictAll(t, m); !slices.Equal(there(), []int{1, 2, 0}) {
		t.Fatalf("a layer that is held was evicted: %v", there())
	}
	release()
	if freed := evictAll(t, m); freed == 0 || len(layers(t, m)) != 0 {
		t.Fatalf("freed %d, left %v", freed, there())
	}
	h.prepare(m, "chg-00000009", commits[2])
	if got := there(); !slices.Equal(got, []int{0, 0, 1}) {
		t.Errorf("made again: %v", got)
	}
}

func TestALayerIsOfUseWhenAWorkspaceOnItIsMadeAndWhenItGoes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	h := newHistory(t)
	commit := h.Commit(wt.Many(3))
	old := func() {
		t.Helper()
		at := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(root, "layers", string(layers(t, m)[0].Tree)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	h.prepare(m, "chg-00000001", commit)
	old()
	h.prepare(m, "chg-00000002", commit)
	if at := layers(t, m)[0].LastUsed; time.Since(at) > 10*time.Minute {
		t.Errorf("made on it, it was last used at %s", at)
	}
	old()
	if err := m.Remove(gittest.Context(t), "chg-00000002"); err != nil {
		t.Fatal(err)
	}
	if at := layers(t, m)[0].LastUsed; time.Since(at) > 10*time.Minute {
		t.Errorf("removed from it, it was last used at %s", at)
	}
}

func TestNothingIsEvictedAsLongAsARecordCannotBeRead(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	h := newHistory(t)
	h.prepare(m, "chg-00000001", h.Commit(wt.Many(3)))
	disktest.Put(t, filepath.Join(root, "workspaces", "chg-00000001", "workspace.json"), "{", 0o644)
	if _, err := m.Layers.Evict(gittest.Context(t), 0, 0); err == nil || !strings.Contains(err.Error(), "chg-00000001") {
		t.Errorf("said %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(root, "layers")); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestABaseWhoseLayersArePartlyGoneIsMadeAnew(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	h := newHistory(t)
	first := h.Commit(map[string]string{"a": "1"})
	h.prepare(m, "chg-00000001", first)
	second := h.Commit(map[string]string{"b": "1"})
	h.prepare(m, "chg-00000002", second)
	if err := m.Remove(gittest.Context(t), "chg-00000002"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "layers", string(layerOf(t, m, h, first).Tree))); err != nil {
		t.Fatal(err)
	}
	w := h.prepare(m, "chg-00000003", second)
	if _, err := os.Stat(filepath.Join(w.BaseFolders()[0], "b")); err != nil || len(w.BaseFolders()) != 1 {
		t.Errorf("%q: %v", w.BaseFolders(), err)
	}
}

func TestALayerOfAnotherProjectIsNotStoodOn(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	a, b := newHistory(t), newHistory(t)
	a.prepare(m, "chg-00000001", a.Commit(map[string]string{"a": "1", "b": "1"}))
	w := b.prepare(m, "chg-00000002", b.Commit(map[string]string{"a": "1"}))
	if len(w.BaseFolders()) != 1 {
		t.Errorf("stands on %q", w.BaseFolders())
	}
	if _, err := m.Open(gittest.Context(t), b.spec("chg-00000001", b.Last)); problem.KindOf(err) != problem.Conflict {
		t.Errorf("said %v", err)
	}
}

func TestWhatABaseIgnoresIsWhatItsOwnTreeSays(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		h := newHistory(t)
		files := map[string]string{".gitignore": "*.o\n", "a": "1"}
		for i, step := range []struct{ ignore, found, left string }{
			{"*.o\n", "x.p", "x.o"}, {"*.p\n", "x.o", "x.p"}, {"*.p\n", "x.o", "x.p"}, {"", "x.o x.p", ""},
		} {
			files["a"] = fmt.Sprint(i)
			if files[".gitignore"] = step.ignore; step.ignore == "" {
				delete(files, ".gitignore")
			}
			w := h.prepare(m, fmt.Sprintf("chg-%08d", i), h.Commit(files))
			wt.Edit(t, w, wt.Write("x.o", "12"), wt.Write("x.p", "1"))
			d := walked(t, m, w)
			var found []string
			for _, f := range d.Changes {
				found = append(found, f.Path)
			}
			left := int64(0)
			for _, l := range d.LeftOver {
				left += l.Bytes
			}
			if want := map[string]int64{"": 0, "x.o": 2, "x.p": 1}[step.left]; strings.Join(found, " ") != step.found || left != want {
				t.Errorf("base %d: %q found, %d bytes left over; want %q and %d", i, found, left, step.found, want)
			}
			if n := len(w.BaseFolders()); n != i+1 {
				t.Errorf("base %d has %d layers", i, n)
			}
		}
	})
}
