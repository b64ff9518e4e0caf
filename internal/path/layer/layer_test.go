package layer_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// shelf is a store of layers, and what stands on them.
type shelf struct {
	*layer.Store
	t     *testing.T
	stood []git.OID
}

// at is a shelf in a folder.
func at(t *testing.T, root string, c layer.Config) *shelf {
	k := &shelf{t: t}
	c.Root = root
	if c.Standing == nil {
		c.Standing = func(each func(git.OID)) error {
			for _, tree := range k.stood {
				each(tree)
			}
			return nil
		}
	}
	k.Store = layer.New(c)
	return k
}

func store(t *testing.T) *shelf {
	return at(t, filepath.Join(t.TempDir(), "layers"), layer.Config{Keep: time.Hour, QuotaBytes: 1 << 40})
}

// open makes the layer of a commit, or finds it, and lets it go again.
func (k *shelf) open(h *wt.History, commit git.OID) layer.Layer {
	k.t.Helper()
	l, release, err := k.Open(gittest.Context(k.t), h.Host, tree(k.t, h, commit), commit)
	if err != nil {
		k.t.Fatal(err)
	}
	release()
	return l
}

// stand makes the layer of a commit, with a workspace on it.
func (k *shelf) stand(h *wt.History, commit git.OID) layer.Layer {
	k.t.Helper()
	l := k.open(h, commit)
	chain, _ := l.Chain()
	k.stood = append(k.stood, chain...)
	return l
}

func tree(t *testing.T, h *wt.History, commit git.OID) git.OID {
	t.Helper()
	oid, err := h.Host.Tree(gittest.Context(t), commit)
	if err != nil {
		t.Fatal(err)
	}
	return oid
}

func (k *shelf) all() []layer.Info {
	k.t.Helper()
	found, err := k.All(gittest.Context(k.t))
	if err != nil {
		k.t.Fatal(err)
	}
	return found
}

// depth is how many layers that of a commit is made of; 0 = it is gone.
func (k *shelf) depth(h *wt.History, commit git.OID) int {
	k.t.Helper()
	of := tree(k.t, h, commit)
	for _, l := range k.all() {
		if l.Tree == of {
			return l.Depth
		}
	}
	return 0
}

// age dates a layer back.
func (k *shelf) age(of git.OID, by time.Duration) {
	k.t.Helper()
	then := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Join(k.Root, string(of)), then, then); err != nil {
		k.t.Fatal(err)
	}
}

func TestASecondBaseCreatesNoMoreThanWhatChangedAndItsFolders(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	files := wt.Many(10_000)
	k.open(h, h.Commit(files))
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
	next := h.Commit(files)
	folders := k.open(h, next).Trees
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
	if l := k.all()[1]; l.Tree != tree(t, h, next) || l.Depth != 2 || l.Bytes == 0 || l.Bytes > 4<<20 {
		t.Errorf("layer %+v", l)
	}
}

func TestALayerHoldsTheBytesOfItsTreeWhateverAttributesSay(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	commit := h.Commit(map[string]string{
		"a.txt": "one\ntwo\n", "id.txt": "$Id$\n", "run": "x+#!/bin/sh\n", "l": "->a.txt",
		".gitattributes": "*.txt eol=crlf ident working-tree-encoding=UTF-16 filter=x\n",
	})
	host, err := repository.New(repository.Config{Root: filepath.Join(t.TempDir(), "repos")}).Open(gittest.Context(t), h.P, commit) // which knows no attributes
	if err != nil {
		t.Fatal(err)
	}
	h.Host = host
	l := k.open(h, commit)
	for name, want := range map[string]string{"a.txt": "one\ntwo\n", "id.txt": "$Id$\n"} {
		got, err := os.ReadFile(filepath.Join(l.Trees[0], name))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]os.FileMode{"a.txt": 0o644, "run": 0o755, ".git": 0o755 | os.ModeDir} {
		if st, err := os.Lstat(filepath.Join(l.Trees[0], name)); err != nil || st.Mode() != want {
			t.Errorf("%s has mode %v, %v", name, st.Mode(), err)
		}
	}
}

func TestTwoCallersMakeALayerOnce(t *testing.T) {
	h, made := wt.NewHistory(t), 0
	commit := h.Commit(map[string]string{"a": "1"})
	var mu sync.Mutex
	h.Host.Ops = disk.Ops{Around: func(op string, do func() error) error {
		if op == "layer:checkout" {
			mu.Lock()
			made++
			mu.Unlock()
		}
		return do()
	}}
	k, of := store(t), tree(t, h, commit)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, release, err := k.Open(gittest.Context(t), h.Host, of, commit)
			if err != nil {
				t.Error(err)
				return
			}
			release()
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("checked out %d times", made)
	}
}

func TestALayerKeepsTheOneItStandsOnUntilItsNoteNamesIt(t *testing.T) {
	h, files := wt.NewHistory(t), map[string]string{}
	for i := range 60 {
		files["d/"+strconv.Itoa(i)] = "text " + strconv.Itoa(i)
	}
	first := h.Commit(files)
	files["d/1"] = "changed"
	second := h.Commit(files)

	var k *shelf
	armed := false
	k = at(t, t.TempDir(), layer.Config{Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "layer:note" && armed { // what clearing up after another change does at any moment
			armed = false
			if _, err := k.Evict(gittest.Context(t), 0, 0); err != nil {
				t.Error(err)
			}
		}
		return do()
	}}})
	k.open(h, first)
	armed = true
	k.open(h, second)
	if armed {
		t.Error("no layer was made")
	}
	if k.depth(h, second) != 2 || k.depth(h, first) != 1 {
		t.Errorf("it has %d layers, and the one below %d", k.depth(h, second), k.depth(h, first))
	}
}

func TestALayerOfAnotherProjectIsNotStoodOn(t *testing.T) {
	k, a, b := store(t), wt.NewHistory(t), wt.NewHistory(t)
	k.open(a, a.Commit(map[string]string{"a": "1", "b": "1"}))
	if l := k.open(b, b.Commit(map[string]string{"a": "1"})); len(l.Trees) != 1 {
		t.Errorf("it stands on %q", l.Trees)
	}
}

func TestWhatCannotBeHiddenIsCheckedOutWhole(t *testing.T) {
	if err := layer.ProbeDeltas(disk.Ops{}, t.TempDir()); err != nil {
		t.Skipf("SKIPPED: deletions cannot be written here: %v", err)
	}
	k := at(t, filepath.Join(t.TempDir(), "layers"), layer.Config{Ops: disk.Ops{Around: func(op string, do func() error) error {
		if op == "layer:lay" {
			return layer.ErrNoWhiteouts
		}
		return do()
	}}})
	h := wt.NewHistory(t)
	k.open(h, h.Commit(map[string]string{"a": "1", "b": "1"}))
	l := k.open(h, h.Commit(map[string]string{"a": "1"}))
	if entries, err := os.ReadDir(l.Trees[0]); err != nil || len(entries) != 2 || len(l.Trees) != 1 { // a, .git
		t.Errorf("%q holds %v, %v", l.Trees, entries, err)
	}
}

// Whatever is interrupted, in making a base on another or in evicting one: what is there afterwards is
// whole, and making it again makes it right.
func TestALayerThatLosesPowerAnywhereIsThereOrNot(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the loop runs as root")
	}
	h := wt.NewHistory(t)
	files := map[string]string{"a": "1", "d/x": "1", "d/y": "1", ".gitignore": "*.o\n"}
	first := h.Commit(files)
	delete(files, "a")
	files["d/x"], files[".gitignore"] = "2", "*.p\n"
	second := h.Commit(files)
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "layers")
		sound := at(t, root, layer.Config{})
		sound.stand(h, first)
		weak := at(t, root, layer.Config{Ops: c.Ops()})
		weak.stood = sound.stood
		if _, err := disktest.Run(func() error {
			_, release, err := weak.Open(gittest.Context(t), h.Host, tree(t, h, second), second)
			if err != nil {
				return err
			}
			release()
			_, err = weak.Evict(gittest.Context(t), 0, 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		gittest.Restart(t)
		if got := sound.all()[0]; got.Depth != 1 || !got.InUse || got.Tree != tree(t, h, first) {
			t.Errorf("the first base's layer is %+v", got)
		}
		l := sound.stand(h, second)
		b, err := layer.OpenBase(l.Trees)
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
		if n := len(sound.all()); n != 2 {
			t.Errorf("%d layers", n)
		}
	})
	for _, op := range []string{"layer:index", "layer:lay", "layer:ignore", "layer:note", "layer:commit", "layer:retire", "layer:remove"} {
		if !slices.Contains(seen, op) {
			t.Errorf("no %s among %q", op, seen)
		}
	}
}

func TestATreeThatReachesOutIsNotLaidOverAnything(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	commit := h.Commit(map[string]string{"a": "1"})
	k.open(h, commit)
	entry := wt.Git(t, h.P.Top, "ls-tree", string(commit))
	inner := mktree(t, h.P.Top, strings.ReplaceAll(entry, "\ta", "\tconfig"))
	for _, name := range []string{".git", "..", ".GIT"} {
		out := git.OID(mktree(t, h.P.Top, entry+"\n040000 tree "+inner+"\t"+name))
		if _, release, err := k.Open(gittest.Context(t), h.Host, out, ""); err == nil {
			release()
			t.Errorf("%s: a layer was made", name)
		}
	}
	for _, out := range []string{"config", ".git/config"} {
		if _, err := os.Lstat(filepath.Join(k.Root, out)); err == nil {
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
