package project_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/project"
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
			r := reader(t)
			host := p.Common(disk.Ops{})
			head := git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
			for range 2 { // what is remembered of a tree that is fit is not remembered of another
				_, err := r.Fit(t.Context(), host, p, head)
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

func TestAPartialCloneIsRefusedByName(t *testing.T) {
	first, _ := wt.Project(t, base)
	wt.Git(t, first.Top, "config", "uploadpack.allowFilter", "true")
	top := filepath.Join(t.TempDir(), "clone")
	wt.Git(t, first.Top, "clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+first.Top, top)
	p, err := git.Open(t.Context(), top)
	if err != nil {
		t.Fatal(err)
	}
	r := reader(t)
	_, err = r.Fit(t.Context(), p.Common(disk.Ops{}), p, git.OID(wt.Git(t, top, "rev-parse", "HEAD")))
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
	for says, limit := range map[string]func(*project.Reader){
		"limit entries": func(r *project.Reader) { r.Entries = 1500 }, "limit path bytes": func(r *project.Reader) { r.PathBytes = 15_000 },
		"more than 2000 files .gitattributes": func(*project.Reader) {},
	} {
		r := reader(t)
		limit(r)
		for _, near := range []bool{false, true} {
			if near { // one that is fit stands beside it
				if _, err := r.Fit(t.Context(), p.Common(disk.Ops{}), p, git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))); err != nil {
					t.Error(err)
				}
			}
			if _, err := r.Fit(t.Context(), p.Common(disk.Ops{}), p, bomb); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
	}
}

// Of a base near one that is known only what differs is looked at, and that as closely as ever.
func TestABaseNearAFitOneIsJudgedByWhatDiffers(t *testing.T) {
	p, _ := wt.Project(t, map[string]string{"a": "1", "b": "1", "c/.gitattributes": "*.x text"})
	r := reader(t)
	r.Entries = 4
	commit := func(add map[string]string, remove ...string) git.OID {
		t.Helper()
		for name, text := range add {
			disktest.Put(t, filepath.Join(p.Top, name), text, 0o644)
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
		return r.Fit(t.Context(), p.Common(disk.Ops{}), p, base)
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
