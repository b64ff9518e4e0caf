package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/path/layer"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// kitchen is a base that ignores what a package manager makes.
var kitchen = map[string]string{
	".gitignore": "node_modules/\n*.log\n", "package-lock.json": "1", "src/a.js": "a", "web/b.js": "b",
	"node_modules/own/kept.js": "tracked",
}

func stockID(family, generation string) layer.StockID {
	return layer.StockID{Family: strings.Repeat(family, 32), Generation: strings.Repeat(generation, 12)}
}

// leave makes a stock whose commands did ops on the base and put files into the folder of caches.
func leave(t *testing.T, m *workspace.Manager, spec workspace.Spec, id layer.StockID, kind layer.StockKind, cache map[string]string, ops ...wt.Op) (layer.Stock, error) {
	t.Helper()
	host, err := m.EnsureRepository(t.Context(), spec.Project, spec.Base)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := host.Tree(t.Context(), spec.Base)
	if err != nil {
		t.Fatal(err)
	}
	n := layer.StockNote{Kind: kind, Base: spec.Base, Tree: tree, Commands: []string{"npm ci"}, Made: time.Now()}
	s, release, err := m.Stocks.Make(t.Context(), id, n, spec.Owner, layer.Stock{}, func(r layer.Room) error {
		w, err := m.Materialize(t.Context(), spec, spec.Base)
		if err != nil {
			return err
		}
		if len(ops) > 0 {
			wt.Edit(t, w, ops...)
		}
		for name, text := range cache {
			path := filepath.Join(r.Cache.Upper, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				return err
			}
		}
		return errors.Join(r.Take(t.Context(), w), m.Discard(t.Context(), w))
	})
	if err == nil {
		release()
	}
	return s, err
}

func TestASetupIsSeenWhereTheBaseIgnoresItAndNothingElseOfItIs(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := wt.Project(t, kitchen)
		spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}
		s, err := leave(t, m, spec, stockID("a", "1"), layer.Setup, nil,
			wt.Mkdir("node_modules/dep"), wt.Write("node_modules/dep/i.js", "dep"), wt.Symlink("node_modules/.bin", "dep"),
			wt.Mkdir("web/node_modules"), wt.Write("web/node_modules/x.js", "x"),
			wt.Write("package-lock.json", "2"), wt.Write("node_modules/own/kept.js", "other"), wt.Remove("src/a.js"),
			wt.Write("stray.txt", "s"), wt.Fifo("pipe.log"))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"node_modules/own/kept.js", "package-lock.json", "pipe.log", "src/a.js", "stray.txt"}; !slices.Equal(s.Note.LeftOut, want) {
			t.Errorf("left out %q, want %q", s.Note.LeftOut, want)
		}
		if want := []string{"node_modules/.bin", "node_modules/dep", "web/node_modules"}; !slices.Equal(s.Note.Roots, want) {
			t.Errorf("roots %q, want %q", s.Note.Roots, want)
		}
		spec.Setup = s.ID.String()
		w, err := m.Prepare(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		look := wt.Exec("cat node_modules/.bin/i.js node_modules/own/kept.js web/node_modules/x.js package-lock.json src/a.js; ls")
		const want = "deptrackedx1anode_modules\npackage-lock.json\nsrc\nweb\n"
		if got := wt.Edit(t, w, look); got != want {
			t.Errorf("an agent sees %q, want %q", got, want)
		}

		wt.Edit(t, w, wt.Write("node_modules/dep/i.js", "poison"), wt.Remove("web/node_modules"), wt.Write("src/a.js", "new"))
		if got := show(walk(t, m, w)); !slices.Equal(got, []string{"src/a.js 100644"}) {
			t.Errorf("its change is %q", got)
		}
		fresh, err := m.MakeAnew(t.Context(), workspace.Spec{Change: spec.Change, Project: p, Base: head, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		if got := wt.Edit(t, fresh, look); got != want {
			t.Errorf("made anew it shows %q, want %q: what an agent wrote is in the stock, or the stock is forgotten", got, want)
		}
	})
}

func TestASetupFitsOnlyATreeInWhichItTakesThePlaceOfNothing(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
	p, head := wt.Project(t, kitchen)
	spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}
	s, err := leave(t, m, spec, stockID("a", "1"), layer.Setup, nil,
		wt.Mkdir("web/node_modules"), wt.Write("web/node_modules/x.js", "x"), wt.Write("debug.log", "l"))
	if err != nil {
		t.Fatal(err)
	}
	host, err := m.EnsureRepository(t.Context(), p, head)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(top string) error
		want bool
	}{
		"something else changed": {func(top string) error { return os.WriteFile(top+"/src/a.js", []byte("2"), 0o644) }, true},
		"its folder is gone":     {func(top string) error { return os.RemoveAll(top + "/web") }, false},
		"its folder is a link": {func(top string) error {
			return errors.Join(os.RemoveAll(top+"/web"), os.Symlink("src", top+"/web"))
		}, false},
		"the tree has the path": {func(top string) error { return os.WriteFile(top+"/debug.log", []byte("tracked"), 0o644) }, false},
	} {
		wt.Git(t, p.Top, "checkout", "-q", "--force", string(head))
		wt.Git(t, p.Top, "clean", "-qxdf")
		if err := c.edit(p.Top); err != nil {
			t.Fatal(err)
		}
		wt.Git(t, p.Top, "add", "--force", "--all")
		tree := git.OID(strings.TrimSpace(wt.Git(t, p.Top, "write-tree")))
		if _, err := m.EnsureRepository(t.Context(), p, git.OID(strings.TrimSpace(wt.Git(t, p.Top, "commit-tree", "-m", name, string(tree))))); err != nil {
			t.Fatal(err)
		}
		if got, err := layer.Fits(t.Context(), host, s, tree); err != nil || got != c.want {
			t.Errorf("%s: fits %v, %v", name, got, err)
		}
	}
}

// What commands left is the host's own: nobody can run it as somebody else, nothing in it waits for somebody, and what its tool would
// touch at each use is dated ahead.
func TestWhatCommandsLeftIsMadeHarmless(t *testing.T) {
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	p, head := wt.Project(t, kitchen)
	host, err := m.EnsureRepository(t.Context(), p, head)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := host.Tree(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	other := wt.Self()
	if os.Geteuid() == 0 {
		other.UID, other.GID = 64124, 64124
	}
	n := layer.StockNote{Kind: layer.Checks, Base: head, Tree: tree, Made: time.Now()}
	s, release, err := m.Stocks.Make(t.Context(), stockID("a", "1"), n, other, layer.Stock{}, func(r layer.Room) error {
		in := func(name string) string { return filepath.Join(r.Cache.Upper, name) }
		return errors.Join(
			os.MkdirAll(in("go-build/ab"), 0o755), os.WriteFile(in("go-build/ab/x-a"), nil, 0o644), os.WriteFile(in("other"), nil, 0o644),
			os.WriteFile(in("suid"), nil, 0o755), os.Chmod(in("suid"), 0o755|os.ModeSetuid), unix.Mkfifo(in("pipe"), 0o666),
			os.Lchown(in("other"), int(other.UID), int(other.GID)), os.Mkdir(in("closed"), 0o000), os.Symlink("/etc/passwd", in("link")))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	stat := func(name string) (st unix.Stat_t) {
		t.Helper()
		if err := unix.Lstat(filepath.Join(s.Cache(), name), &st); err != nil {
			t.Fatal(err)
		}
		return st
	}
	for _, name := range []string{"", "other", "suid", "link", "closed", "go-build/ab/x-a"} {
		if st := stat(name); int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&unix.S_ISUID != 0 {
			t.Errorf("%q belongs to uid %d, mode %o", name, st.Uid, st.Mode)
		}
	}
	if _, err := os.Lstat(filepath.Join(s.Cache(), "pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a FIFO stays: %v", err)
	}
	if ahead, plain := stat("go-build/ab/x-a").Mtim.Sec, stat("other").Mtim.Sec; ahead < time.Now().AddDate(1, 0, 0).Unix() || plain > time.Now().Unix()+60 {
		t.Errorf("dated %d and %d", ahead, plain)
	}
	// It is good for its family, and for what is done by other commands with the same.
	for family, want := range map[string]bool{
		s.ID.Family: true, s.ID.Family[:16] + strings.Repeat("b", 16): true, strings.Repeat("b", 16) + s.ID.Family[16:]: false,
	} {
		got, release, err := m.Stocks.Latest(family)
		release()
		if err != nil || got.None() == want {
			t.Errorf("%s: %v, %v", family, got.ID, err)
		}
	}
}

func TestStocksGoWhenReplacedUnusedOrTooLargeAndNeverWhileTheyAreInUse(t *testing.T) {
	root := filepath.Join(t.TempDir(), "state")
	m := workspace.New(workspace.Config{Root: root, Strategy: workspace.Overlay, Cache: workspace.Cache{Keep: time.Hour, QuotaBytes: 1 << 20}})
	p, head := wt.Project(t, kitchen)
	spec := workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}
	make := func(family, generation string, kind layer.StockKind, cache string) layer.Stock {
		t.Helper()
		s, err := leave(t, m, spec, stockID(family, generation), kind, map[string]string{"f": cache})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	trim := func(want ...string) {
		t.Helper()
		foretold, err := m.Stocks.Surplus()
		if err != nil || len(foretold) != 0 && len(want) == 0 {
			t.Errorf("foretold %v, %v", foretold, err)
		}
		before, _ := m.Stocks.All()
		if _, err := m.Stocks.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		left, err := m.Stocks.All()
		if err != nil || len(before)-len(left) != len(foretold) {
			t.Errorf("foretold %d, %d of %d left, %v", len(foretold), len(left), len(before), err)
		}
		var names []string
		for _, s := range left {
			names = append(names, s.ID.Family[:1]+s.ID.Generation[:1])
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("left are %q, want %q", names, want)
		}
	}
	old := make("a", "1", layer.Checks, "x")
	_, release, err := m.Stocks.Open(old.ID) // a check runs on it
	if err != nil {
		t.Fatal(err)
	}
	make("a", "2", layer.Checks, strings.Repeat("x", 400<<10))
	setup := make("b", "1", layer.Setup, "x")
	make("b", "2", layer.Setup, "x") // another branch's: both are of use
	trim("a1", "a2", "b1", "b2")
	release()
	trim("a2", "b1", "b2")

	spec.Setup = setup.ID.String()
	if _, err := m.Prepare(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * time.Hour)
	for _, id := range []layer.StockID{setup.ID, stockID("b", "2")} {
		if err := os.Chtimes(filepath.Join(root, "stock", id.String()), long, long); err != nil {
			t.Fatal(err)
		}
	}
	trim("a2", "b1")
	make("c", "1", layer.Checks, strings.Repeat("x", 800<<10))
	trim("b1", "c1") // a2 was used longest ago of those that nobody stands on
}

func TestAStockThatLosesPowerAnywhereIsThereOrNot(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: -short: the loop runs as root")
	}
	old, id := stockID("a", "1"), stockID("a", "2")
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "state")
		conf := workspace.Config{Root: root, Strategy: workspace.Overlay}
		make := func(m *workspace.Manager, id layer.StockID) error {
			_, release, err := m.Stocks.Make(t.Context(), id, layer.StockNote{Kind: layer.Checks, Made: time.Now()}, wt.Self(), layer.Stock{}, func(r layer.Room) error {
				return os.WriteFile(filepath.Join(r.Cache.Upper, "f"), []byte("cached"), 0o644)
			})
			if err == nil {
				release()
			}
			return err
		}
		if err := make(workspace.New(conf), old); err != nil {
			t.Fatal(err)
		}
		weak := conf
		weak.Ops = c.Ops()
		if _, err := disktest.Run(func() error {
			m := workspace.New(weak)
			if err := make(m, id); err != nil {
				return err
			}
			_, err := m.Stocks.Trim(t.Context())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		sound := workspace.New(conf)
		if err := sound.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		there, err := sound.Stocks.All()
		if err != nil || len(there) == 0 {
			t.Fatalf("the family is gone: %v", err)
		}
		if left, err := os.ReadDir(filepath.Join(root, "stock")); err != nil || len(left) != len(there) {
			t.Errorf("half of one stays: %v, %v", left, err)
		}
		if err := make(sound, id); err != nil {
			t.Fatal(err)
		}
		s, release, err := sound.Stocks.Latest(id.Family)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if text, err := os.ReadFile(filepath.Join(s.Cache(), "f")); s.ID != id || err != nil || string(text) != "cached" {
			t.Errorf("%s holds %q, %v", s.ID, text, err)
		}
	})
	for _, op := range []string{"stock:folders", "stock:seal", "stock:note", "stock:commit", "stock:retire", "stock:remove"} {
		if !slices.Contains(seen, op) {
			t.Errorf("no %s among %q", op, seen)
		}
	}
}
