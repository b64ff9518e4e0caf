package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestAMaterializedTreeIsExactlyTheCommits(t *testing.T) {
	trees := map[string]map[string]string{
		"same":                base,
		"empty":               {},
		"other":               {"x/y/z": "1", "w": "2"},
		"folder gone":         {"README": "read me\n", "run.sh": "x+#!/bin/sh\n"},
		"inner folder gone":   {"README": "read me\n", "src/a.go": "package a\n", "docs/x.md": "x\n"},
		"file becomes folder": {"README/x": "1", "run.sh/y/z": "2", "src/a.go/b": "3"},
		"folder becomes file": {"src": "1", "docs": "->src"},
		"links and modes":     {"link": "plain", "run.sh": "#!/bin/sh\n", "README": "x+read me\n", "src/deep": "->../docs"},
		"changed":             {"src/a.go": "package changed\n", "src/b.go": "package b\n", "src/new.go": "package n\n", "src/deep/c.go": "package c\n"},
		"odd names":           {"-rf": "1", "a\nb": "2", "\xff": "3"},
	}
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := wt.Project(t, base)
		for name, files := range trees {
			t.Run(name, func(t *testing.T) {
				wt.Git(t, p.Top, "rm", "-rqf", "--ignore-unmatch", ".")
				wt.Files(t, p.Top, files)
				_, commit := wt.Commit(t, p.Top)
				if _, err := m.EnsureRepository(gittest.Context(t), p, commit); err != nil {
					t.Fatal(err)
				}
				w, err := m.Materialize(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()}, commit)
				if err != nil {
					t.Fatal(err)
				}
				var want []string
				for path := range files {
					want = append(want, path)
					for up := filepath.Dir(path); up != "."; up = filepath.Dir(up) {
						want = append(want, up)
					}
				}
				slices.Sort(want)
				want = slices.Compact(want)
				got := strings.Split(strings.TrimSuffix(wt.Edit(t, w, wt.Exec("find . -mindepth 1 -path ./.git -prune -o -mindepth 1 -printf '%P\\0'")), "\x00"), "\x00")
				slices.Sort(got)
				if len(files) == 0 {
					want = []string{""}
				}
				if !slices.Equal(got, want) {
					t.Errorf("shows %q, want %q", got, want)
				}
				merged := filepath.Join(t.TempDir(), "copy")
				wt.Try(t, w, merged)
				wt.Git(t, merged, "init", "-q")
				wt.Git(t, merged, "add", "-A")
				if got, want := wt.Git(t, merged, "write-tree"), wt.Git(t, p.Top, "rev-parse", string(commit)+"^{tree}"); got != want {
					t.Errorf("shows tree %s, want %s", got, want)
				}
				upon := wt.Git(t, p.Top, "rev-parse", string(commit)+"^{tree}") + "\n" + string(head) + "\n" // upon its base, whatever stood between
				if out := wt.Edit(t, w, wt.Exec("git status --porcelain; git rev-parse HEAD^{tree} HEAD^@")); out != upon {
					t.Errorf("git says %q, want %q", out, upon)
				}
				if err := m.Discard(gittest.Context(t), w); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
}

func TestManyEditsAreShownAsALayerOfTheirOwn(t *testing.T) {
	wt.CanOverlay(t)
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Strategy: workspace.Overlay})
	p, head := wt.Project(t, base)
	host, err := m.EnsureRepository(gittest.Context(t), p, head)
	if err != nil {
		t.Fatal(err)
	}
	in := git.Import{Ref: "refs/sallyport/test/many", From: head, Parents: []git.OID{head}}
	for i := range 6000 {
		in.Writes = append(in.Writes, git.Write{Path: fmt.Sprintf("many/%d/%d", i%50, i), Mode: git.File, Data: git.Text("x")})
	}
	made, err := host.Import(gittest.Context(t), "test:import", in)
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Materialize(gittest.Context(t), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Owner: wt.Self()}, made.OID)
	if err != nil {
		t.Fatal(err)
	}
	if out := wt.Edit(t, w, wt.Exec("find many -type f | wc -l; git status --porcelain")); strings.TrimSpace(out) != "6000" {
		t.Errorf("shows %q files", out)
	}
	if err := m.Discard(gittest.Context(t), w); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Dir(w.Tree.Upper)); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	prepared := prepare(t, m, base)
	if err := m.Discard(gittest.Context(t), prepared); err == nil {
		t.Error("a prepared workspace was discarded")
	}
}
