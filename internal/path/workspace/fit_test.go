package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/repository"
	"sallyport/internal/path/workspace"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestWhatCannotBeWorkedOnIsRefusedByName(t *testing.T) {
	attributes := func(file, text string) func(t *testing.T, top string) {
		return func(t *testing.T, top string) { wt.Files(t, top, map[string]string{file: text}) }
	}
	config := func(key, value string) func(t *testing.T, top string) {
		return func(t *testing.T, top string) { wt.Git(t, top, "config", key, value) }
	}
	for name, c := range map[string]struct {
		make  func(t *testing.T, top string)
		names []string // all are in the message; none = fit
	}{
		"plain":       {func(*testing.T, string) {}, nil},
		"a long line": {attributes(".gitattributes", strings.Repeat("a", 3000)+" text\n"), []string{"line 1 of .gitattributes"}},
		"sparse":      {config("core.sparseCheckout", "yes"), nil},
		"submodule": {func(t *testing.T, top string) {
			wt.Git(t, top, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",libs/sub")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := wt.Project(t, base)
			wt.Git(t, p.Top, "config", "core.autocrlf", "false")
			c.make(t, p.Top)
			wt.Git(t, p.Top, "add", "--", ".")
			if name == "submodule" {
				c.make(t, p.Top)
			}
			wt.Git(t, p.Top, "commit", "-qm", "y", "--allow-empty")
			m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
			host := p.Common(disk.Ops{})
			head := git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
			for range 2 { // what is remembered of a tree that is fit is not remembered of another
				_, err := m.Projects.Fit(t.Context(), host, p, head)
				if c.names == nil {
					if err != nil {
						t.Fatal(err)
					}
					continue
				}
				if problem.KindOf(err) != problem.Refused || problem.Of(err).Next == "" {
					t.Fatalf("error is %v", err)
				}
				for _, n := range c.names {
					if !strings.Contains(err.Error(), n) {
						t.Errorf("%q is not in %q", n, err)
					}
				}
			}
		})
	}
}

func TestAShallowCloneWorks(t *testing.T) {
	everyWay(t, func(t *testing.T, m *workspace.Manager) {
		p, head := shallow(t)
		host, err := m.EnsureRepository(t.Context(), p, head)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Projects.Fit(t.Context(), p.Common(disk.Ops{}), p, head); err != nil {
			t.Fatal(err)
		}
		w, err := m.Prepare(t.Context(), workspace.Spec{Change: "chg-00000001", Project: p, Base: head, Branch: "main", Owner: wt.Self()})
		if err != nil {
			t.Fatal(err)
		}
		if got := wt.Edit(t, w, wt.Exec("git log --format=%s; git status --porcelain")); strings.TrimSpace(got) != "x" {
			t.Errorf("git says %q", got)
		}
		made, err := host.Import(t.Context(), "test:import", git.Import{
			Ref: repository.RefRoot(w.Spec.Change) + "checkpoints/1", From: head, Parents: []git.OID{head},
			Writes: []git.Write{{Path: "new", Mode: git.File, Data: git.Text("1")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Common(disk.Ops{}).Receive(t.Context(), "test:receive", host, made.OID, []git.OID{head}); err != nil {
			t.Fatal(err)
		}
		if got := wt.Git(t, p.Top, "show", string(made.OID)+":new"); got != "1" {
			t.Errorf("the project received %q", got)
		}
	})
}

func shallow(t *testing.T) (git.Project, git.OID) {
	t.Helper()
	first, _ := wt.Project(t, base)
	wt.Files(t, first.Top, map[string]string{"more": "1"})
	_, head := wt.Commit(t, first.Top)
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--depth", "1", "file://"+first.Top, top)
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	return p, head
}

func TestAPartialCloneIsRefusedByName(t *testing.T) {
	first, _ := wt.Project(t, base)
	wt.Git(t, first.Top, "config", "uploadpack.allowFilter", "true")
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+first.Top, top)
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
	_, err = m.Projects.Fit(t.Context(), p.Common(disk.Ops{}), p, git.OID(wt.Git(t, top, "rev-parse", "HEAD")))
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "partial") {
		t.Errorf("error is %v", err)
	}
}

func TestABaseOfMoreThanAWorkspaceMayHoldIsRefusedBeforeItIsMade(t *testing.T) {
	p, _ := wt.Project(t, map[string]string{"a/.gitattributes": "* text\n", "a/file": "x"})
	// A tree that holds itself ten times, and again: few objects, many files.
	tree := wt.Git(t, p.Top, "rev-parse", "HEAD:a")
	name := "d"
	for range 4 {
		wt.Git(t, p.Top, "read-tree", "--empty")
		for i := range 10 {
			wt.Git(t, p.Top, "read-tree", fmt.Sprintf("--prefix=%s%d/", name, i), tree)
		}
		tree = wt.Git(t, p.Top, "write-tree")
	}
	bomb := git.OID(wt.Git(t, p.Top, "commit-tree", "-m", "bomb", tree))
	for limit, limits := range map[string]workspace.Limits{
		"limit entries": {Entries: 1500}, "limit path bytes": {PathBytes: 15_000}, "more than 2000 files .gitattributes": {},
	} {
		m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Limits: limits})
		for _, near := range []bool{false, true} {
			if near { // one that is fit stands beside it
				if _, err := m.Projects.Fit(t.Context(), p.Common(disk.Ops{}), p, git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))); err != nil {
					t.Error(err)
				}
			}
			if _, err := m.Projects.Fit(t.Context(), p.Common(disk.Ops{}), p, bomb); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), limit) {
				t.Errorf("%s: %v", limit, err)
			}
		}
	}
}

// Of a base near one that is known only what differs is looked at, and that as closely as ever.
func TestABaseNearAFitOneIsJudgedByWhatDiffers(t *testing.T) {
	p, _ := wt.Project(t, map[string]string{"a": "1", "b": "1", "c/.gitattributes": "*.x text"})
	m := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state"), Limits: workspace.Limits{Entries: 4}})
	commit := func(add map[string]string, remove ...string) git.OID {
		t.Helper()
		for name, text := range add {
			if err := os.WriteFile(filepath.Join(p.Top, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range remove {
			if err := os.Remove(filepath.Join(p.Top, name)); err != nil {
				t.Fatal(err)
			}
		}
		wt.Git(t, p.Top, "add", "-A")
		wt.Git(t, p.Top, "commit", "-qm", "more")
		return git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
	}
	fit := func(base git.OID) ([]string, error) {
		return m.Projects.Fit(t.Context(), p.Common(disk.Ops{}), p, base)
	}

	said, err := fit(git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD")))
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range []git.OID{commit(map[string]string{"d": "1"}), commit(map[string]string{"e": "1"}, "d"), commit(map[string]string{"e": "2"})} {
		if again, err := fit(base); err != nil || !slices.Equal(again, said) {
			t.Errorf("%v, %v; before it was %v", again, err, said)
		}
	}
	if _, err := fit(commit(map[string]string{"f": "1"})); problem.KindOf(err) != problem.Refused {
		t.Errorf("one file more than there may be: %v", err)
	}
	if said, err := fit(commit(map[string]string{"c/.gitattributes": "*.x ident"}, "f")); err != nil || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "ident") }) {
		t.Errorf("other attributes: %v, %v", said, err)
	}
}
