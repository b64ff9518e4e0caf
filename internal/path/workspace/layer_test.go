package workspace_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// history makes commits whose trees are just what it is given.
type history struct {
	t    testing.TB
	p    git.Project
	host git.Dir
	last git.OID
}

func newHistory(t testing.TB) *history {
	t.Helper()
	p, _ := wt.Project(t, nil)
	return &history{t: t, p: p, host: p.Common(disk.Ops{})}
}

// commit makes one on the last one. A text that begins with x+ is executable, with -> a link.
func (h *history) commit(files map[string]string) git.OID {
	h.t.Helper()
	in := git.Import{Ref: "refs/heads/main", Message: "x\n"}
	if h.last != "" {
		in.Parents = []git.OID{h.last}
	}
	for name, text := range files {
		w := git.Write{Path: name, Mode: git.File}
		if to, ok := strings.CutPrefix(text, "->"); ok {
			w.Mode, text = git.Symlink, to
		} else if body, ok := strings.CutPrefix(text, "x+"); ok {
			w.Mode, text = git.Executable, body
		}
		w.Data = git.Text(text)
		in.Writes = append(in.Writes, w)
	}
	made, err := h.host.Import(h.t.Context(), "test:import", in)
	if err != nil {
		h.t.Fatal(err)
	}
	h.last = made.OID
	return made.OID
}

func (h *history) spec(change string, base git.OID) workspace.Spec {
	return workspace.Spec{Change: id.Change(change), Project: h.p, Base: base, Branch: "main", Owner: wt.Self()}
}

func (h *history) prepare(m *workspace.Manager, change string, base git.OID) workspace.Workspace {
	h.t.Helper()
	w, err := m.Prepare(h.t.Context(), h.spec(change, base))
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

func layers(t testing.TB, m *workspace.Manager) []layer.Info {
	t.Helper()
	found, err := m.Layers.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func layerOf(t testing.TB, m *workspace.Manager, h *history, commit git.OID) layer.Info {
	t.Helper()
	tree, err := h.host.Tree(t.Context(), commit)
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
	freed, err := m.Layers.Evict(t.Context(), 0, 0)
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
		rapid.Check(t, func(r *rapid.T) {
			if n++; n > often() {
				return
			}
			change := fmt.Sprintf("chg-%08d", n)
			defer func() {
				for _, left := range []id.Change{id.Change(change), id.Change(change + "-2"), id.Change(change + "-3"), id.Change(change + "-4")} {
					for _, m := range []*workspace.Manager{m, plain} {
						if err := m.Remove(t.Context(), left); err != nil {
							t.Error(err)
						}
					}
				}
			}()
			files := anyTree(r, "tree 1", nil)
			for i := 2; i < 5; i++ {
				h.prepare(m, fmt.Sprintf("%s-%d", change, i), h.commit(files))
				files = anyTree(r, fmt.Sprint("tree ", i), files)
			}
			commit := h.commit(files)
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
	d, err := m.Walk(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Changes {
		d.Changes[i].At = 0
	}
	return d
}

// many is a tree of n files.
func many(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d%d/e%d/f%d", i%100, i/100%10, i)] = fmt.Sprint("file ", i)
	}
	return files
}

func TestASecondBaseCreatesNoMoreThanWhatChangedAndItsFolders(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	h := newHistory(t)
	files := many(10_000)
	h.prepare(m, "chg-00000001", h.commit(files))
	may := map[string]bool{}
	for i, name := range slices.Sorted(maps.Keys(files))[5000:5100] {
		switch i % 3 {
		case 0:
			files[name] = "changed"
		case 1:
			delete(files, name)
		default:
			files[name] = "x+" + files[name]
		}
		for ; name != "."; name = path.Dir(name) {
			may[name] = true
		}
	}
	next := h.commit(files)
	w := h.prepare(m, "chg-00000002", next)
	folders := w.BaseFolders()
	if len(folders) != 2 {
		t.Fatalf("%d layers", len(folders))
	}
	made := map[string]bool{}
	top := filepath.Dir(folders[1])
	err := filepath.WalkDir(top, func(p string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, p)
		made[rel] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{".", "tree", "index", "layer.json"} {
		delete(made, own)
	}
	for p := range made {
		if !may[strings.TrimPrefix(p, "tree/")] {
			t.Errorf("%q was made", p)
		}
	}
	if len(made) < 100 || len(made) > len(may) {
		t.Errorf("%d entries made, for %d changed paths and folders", len(made), len(may))
	}
	if l := layerOf(t, m, h, next); l.Depth != 2 || l.Bytes == 0 || l.Bytes > 4<<20 {
		t.Errorf("layer %+v", l)
	}
}

func TestLayersDoNotStandOnEachOtherWithoutEnd(t *testing.T) {
	for _, s := range []workspace.Strategy{workspace.Overlay, workspace.Reflink} {
		t.Run(string(s), func(t *testing.T) {
			if s == workspace.Overlay {
				wt.CanOverlay(t)
			}
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "s"), Strategy: s})
			h := newHistory(t)
			files := many(300)
			var depths []int
			var w workspace.Workspace
			for i := range 23 {
				files[fmt.Sprintf("n%d/new", i)] = "1"
				delete(files, fmt.Sprintf("d%d/e0/f%d", i, i))
				delete(files, fmt.Sprintf("n%d/new", i-2))
				commit := h.commit(files)
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
	files := many(10)
	var commits []git.OID
	for i := range 3 {
		files["new"] = strings.Repeat("x", i)
		commits = append(commits, h.commit(files))
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
		if err := m.Remove(t.Context(), id.Change(fmt.Sprintf("chg-%08d", i))); err != nil {
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
	shown, err := m.Materialize(t.Context(), h.spec("chg-00000001", commits[1]), commits[1])
	if err != nil {
		t.Fatal(err)
	}
	remove(2)
	if evictAll(t, m); !slices.Equal(there(), []int{1, 2, 0}) {
		t.Fatalf("with a throw-away workspace on the second: %v", there())
	}
	if err := m.Discard(t.Context(), shown); err != nil {
		t.Fatal(err)
	}
	tree, err := h.host.Tree(t.Context(), commits[1])
	if err != nil {
		t.Fatal(err)
	}
	_, release, err := m.Layers.Open(t.Context(), h.host, tree, "")
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

func TestLayersGoByAgeAndThenByRoomTheLongestUnusedFirst(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	var trees []git.OID
	for i := range 4 { // of four projects: none stands on another
		h := newHistory(t)
		commit := h.commit(map[string]string{"big": strings.Repeat("x", 100_000+i)})
		h.prepare(m, "chg-00000001", commit)
		l := layerOf(t, m, h, commit)
		if err := m.Remove(t.Context(), "chg-00000001"); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Duration(4-i) * time.Hour)
		if err := os.Chtimes(filepath.Join(root, "layers", string(l.Tree)), at, at); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, l.Tree)
	}
	left := func() (out []int) {
		for _, l := range layers(t, m) {
			out = append(out, slices.Index(trees, l.Tree))
		}
		return out
	}
	each := layers(t, m)[0].Bytes
	for _, step := range []struct {
		keep  time.Duration
		quota int64
		want  []int
	}{
		{-1, -1, []int{0, 1, 2, 3}},
		{24 * time.Hour, 4*each + each/2, []int{0, 1, 2, 3}},
		{3*time.Hour + 30*time.Minute, -1, []int{1, 2, 3}},
		{-1, 2*each + each/2, []int{2, 3}},
		{24 * time.Hour, each + each/2, []int{3}},
		{-1, 0, nil},
	} {
		freed, err := m.Layers.Evict(t.Context(), step.keep, step.quota)
		if err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, step.want) {
			t.Fatalf("keep %s, quota %d: left %v, want %v (freed %d)", step.keep, step.quota, got, step.want, freed)
		}
	}
}

func TestALayerIsOfUseWhenAWorkspaceOnItIsMadeAndWhenItGoes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	h := newHistory(t)
	commit := h.commit(many(3))
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
	if err := m.Remove(t.Context(), "chg-00000002"); err != nil {
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
	h.prepare(m, "chg-00000001", h.commit(many(3)))
	if err := os.WriteFile(filepath.Join(root, "workspaces", "chg-00000001", "workspace.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Layers.Evict(t.Context(), 0, 0); err == nil || !strings.Contains(err.Error(), "chg-00000001") {
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
	first := h.commit(map[string]string{"a": "1"})
	h.prepare(m, "chg-00000001", first)
	second := h.commit(map[string]string{"b": "1"})
	h.prepare(m, "chg-00000002", second)
	if err := m.Remove(t.Context(), "chg-00000002"); err != nil {
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

func TestWhatCannotBeHiddenIsCheckedOutWhole(t *testing.T) {
	if err := layer.ProbeDeltas(disk.Ops{}, t.TempDir()); err != nil {
		t.Skipf("SKIPPED: deletions cannot be written here: %v", err)
	}
	refuse := disk.Ops{Around: func(op string, do func() error) error {
		if op == "layer:lay" {
			return workspace.ErrNoWhiteouts
		}
		return do()
	}}
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay, Ops: refuse})
	h := newHistory(t)
	h.prepare(m, "chg-00000001", h.commit(map[string]string{"a": "1", "b": "1"}))
	w := h.prepare(m, "chg-00000002", h.commit(map[string]string{"a": "1"}))
	if entries, err := os.ReadDir(w.BaseFolders()[0]); err != nil || len(entries) != 2 || len(w.BaseFolders()) != 1 { // a, .git
		t.Errorf("%q holds %v, %v", w.BaseFolders(), entries, err)
	}
}

// Whatever is interrupted, in making a base on another or in evicting one: what is there afterwards is
// whole, and making it again makes it right.
func TestALayerThatLosesPowerAnywhereIsThereOrNot(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the loop runs as root")
	}
	h := newHistory(t)
	files := map[string]string{"a": "1", "d/x": "1", "d/y": "1", ".gitignore": "*.o\n"}
	first := h.commit(files)
	delete(files, "a")
	files["d/x"], files[".gitignore"] = "2", "*.p\n"
	second := h.commit(files)
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "state")
		sound := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
		h.prepare(sound, "chg-00000001", first)
		weak := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay, Ops: c.Ops()})
		if _, err := disktest.Run(func() error {
			if _, err := weak.Prepare(t.Context(), h.spec("chg-00000002", second)); err != nil {
				return err
			}
			if err := weak.Remove(t.Context(), "chg-00000002"); err != nil {
				return err
			}
			_, err := weak.Layers.Evict(t.Context(), 0, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sound = workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
		if err := sound.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := layerOf(t, sound, h, first); got.Depth != 1 || !got.InUse {
			t.Errorf("the first base's layer is %+v", got)
		}
		w := h.prepare(sound, "chg-00000002", second)
		b, err := layer.OpenBase(w.BaseFolders())
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		var got []string
		if err := b.Names(func(name string) error { got = append(got, name); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if want := []string{".git", ".gitignore", "d"}; !slices.Equal(got, want) {
			t.Errorf("shows %q, want %q", got, want)
		}
		entries, err := os.ReadDir(filepath.Join(root, "layers"))
		if err != nil || len(entries) != 2 {
			t.Errorf("layers %v, %v", entries, err)
		}
	})
	for _, op := range []string{"layer:index", "layer:lay", "layer:ignore", "layer:note", "layer:commit", "layer:retire", "layer:remove"} {
		if !slices.Contains(seen, op) {
			t.Errorf("no %s among %q", op, seen)
		}
	}
}

func TestALayerOfAnotherProjectIsNotStoodOn(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	a, b := newHistory(t), newHistory(t)
	a.prepare(m, "chg-00000001", a.commit(map[string]string{"a": "1", "b": "1"}))
	w := b.prepare(m, "chg-00000002", b.commit(map[string]string{"a": "1"}))
	if len(w.BaseFolders()) != 1 {
		t.Errorf("stands on %q", w.BaseFolders())
	}
	if _, err := m.Open(t.Context(), b.spec("chg-00000001", b.last)); problem.KindOf(err) != problem.Conflict {
		t.Errorf("said %v", err)
	}
}

func TestATreeThatReachesOutIsNotLaidOverAnything(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay})
	h := newHistory(t)
	commit := h.commit(map[string]string{"a": "1"})
	h.prepare(m, "chg-00000001", commit)
	entry := wt.Git(t, h.p.Top, "ls-tree", string(commit))
	inner := mktree(t, h.p.Top, strings.ReplaceAll(entry, "\ta", "\tconfig"))
	for _, name := range []string{".git", "..", ".GIT"} {
		tree := mktree(t, h.p.Top, entry+"\n040000 tree "+inner+"\t"+name)
		host, err := m.EnsureRepository(t.Context(), h.p, git.OID(wt.Git(t, h.p.Top, "commit-tree", "-m", "out", tree)))
		if err != nil {
			t.Fatal(err)
		}
		_, release, err := m.Layers.Open(t.Context(), host, git.OID(tree), "")
		if err == nil {
			release()
			t.Errorf("%s: a layer was made", name)
		}
	}
	for _, out := range []string{"layers/config", "layers/.git/config"} {
		if _, err := os.Lstat(filepath.Join(root, out)); err == nil {
			t.Errorf("%s was written", out)
		}
	}
}

// mktree makes a tree of whatever names.
func mktree(t *testing.T, top, entries string) string {
	t.Helper()
	cmd := exec.Command("git", "mktree")
	cmd.Dir, cmd.Stdin = top, strings.NewReader(entries+"\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestWhatTrimmingWouldRemoveIsWhatItRemoves(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay, Cache: workspace.Cache{Keep: time.Hour}})
	h := newHistory(t)
	for i := range 3 {
		change := fmt.Sprintf("chg-%08d", i)
		h.prepare(m, change, h.commit(map[string]string{"a": "1", "b": strings.Repeat("x", i)}))
		if i == 0 {
			continue // a workspace stands on it
		}
		if err := m.Remove(t.Context(), id.Change(change)); err != nil {
			t.Fatal(err)
		}
	}
	all := layers(t, m)
	for _, l := range all {
		at := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(filepath.Join(root, "layers", string(l.Tree)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	would, err := m.Layers.Surplus(t.Context())
	if err != nil || len(would) != 2 || len(layers(t, m)) != 3 {
		t.Fatalf("would remove %v of %v, %v", would, all, err)
	}
	freed, err := m.Layers.Trim(t.Context())
	if left := layers(t, m); err != nil || freed != would[0].Bytes+would[1].Bytes || len(left) != 1 || left[0].Depth != 1 {
		t.Errorf("freed %d of %v, left %v, %v", freed, would, left, err)
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
			w := h.prepare(m, fmt.Sprintf("chg-%08d", i), h.commit(files))
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
