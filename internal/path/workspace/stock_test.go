package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
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
	host, err := m.EnsureRepository(gittest.Context(t), spec.Project, spec.Base)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := host.Tree(gittest.Context(t), spec.Base)
	if err != nil {
		t.Fatal(err)
	}
	n := layer.StockNote{Kind: kind, Base: spec.Base, Tree: tree, Commands: []string{"npm ci"}, Made: time.Now()}
	s, release, err := m.Stocks.Make(gittest.Context(t), id, n, spec.Owner, layer.Stock{}, func(r layer.Room) error {
		w, err := m.Materialize(gittest.Context(t), spec, spec.Base)
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
		return errors.Join(r.Take(gittest.Context(t), w), m.Discard(gittest.Context(t), w))
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
		w, err := m.Prepare(gittest.Context(t), spec)
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
		fresh, err := m.MakeAnew(gittest.Context(t), workspace.Spec{Change: spec.Change, Project: p, Base: head, Branch: "main", Owner: wt.Self()})
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
	host, err := m.EnsureRepository(gittest.Context(t), p, head)
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
		if _, err := m.EnsureRepository(gittest.Context(t), p, git.OID(strings.TrimSpace(wt.Git(t, p.Top, "commit-tree", "-m", name, string(tree))))); err != nil {
			t.Fatal(err)
		}
		if got, err := layer.Fits(gittest.Context(t), host, s, tree); err != nil || got != c.want {
			t.Errorf("%s: fits %v, %v", name, got, err)
		}
	}
}
