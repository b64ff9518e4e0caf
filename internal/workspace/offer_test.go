package workspace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/git"
	"sallyport/internal/problem"
	"sallyport/internal/workspace"
	wt "sallyport/internal/workspace/workspacetest"
)

const change = "chg-00000001"

func manager(t *testing.T) *workspace.Manager {
	return workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "state")})
}

// photo is every file of a person's repository with its mode, but for objects, which may grow.
func photo(t *testing.T, top string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if p == filepath.Join(top, ".git/objects") {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		fmt.Fprintf(&out, "%s %v %v %q\n", p, info.Mode(), info.ModTime(), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDirtyNamesWhatIsNotInTheCopy(t *testing.T) {
	m := manager(t)
	files := map[string]string{".gitignore": "*.o\n", "a": "1\n", "b": "1\n", "c": "1\n", "d": "1\n", "e": "1\n", "x.o": "tracked", "same": "1\n"}
	p, head := wt.Project(t, files)
	top := p.Top
	wt.Files(t, top, map[string]string{"a": "changed\n", "staged": "2\n", "new\nline": "3\n", "y.o": "ignored", "deep/er/u": "4"})
	wt.Git(t, top, "add", "staged")
	wt.Git(t, top, "rm", "-q", "b")
	wt.Git(t, top, "rm", "-q", "--cached", "c", "x.o")
	if err := os.Remove(filepath.Join(top, "d")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(top, "e"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(top, "same"), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	plantTraps(t, top)
	before := photo(t, top)
	want := []string{"a", "b", "c", "d", "deep/er/u", "e", "new\nline", "staged", "x.o"}
	got, err := m.Dirty(t.Context(), p, head)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("dirty %q, %v; want %q", got, err, want)
	}

	at := time.Unix(1_700_000_000, 0)
	host, err := m.Repository(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("not this")
	_, err = m.IncludeDirty(t.Context(), p, change, head, at, func(_ git.Dir, writes []git.Write) error {
		if len(writes) != len(want) {
			t.Errorf("looked at %d paths", len(writes))
		}
		return refused
	})
	if refs, rerr := host.Refs(t.Context(), workspace.BaseRef(change)); !errors.Is(err, refused) || rerr != nil || len(refs) != 0 {
		t.Errorf("what was refused is kept: %v, %v, %v", refs, err, rerr)
	}
	made, err := m.IncludeDirty(t.Context(), p, change, head, at, anything)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.IncludeDirty(t.Context(), p, change, head, at, anything)
	if err != nil || again != made {
		t.Errorf("made again: %s and %s, %v", made, again, err)
	}
	if photo(t, top) != before {
		t.Error("the person's repository changed")
	}
	var listed []string
	err = host.List(t.Context(), made, func(path string, e git.Entry, _ int64) error {
		listed = append(listed, string(e.Mode[3:])+path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// c was taken out of the index and is a file that nothing ignores: as git add -A has it.
	tree := []string{"644.gitignore", "644a", "644c", "644deep/er/u", "755e", "644new\nline", "644same", "644staged"}
	if !slices.Equal(listed, tree) {
		t.Errorf("the base holds %q, want %q", listed, tree)
	}

	// The workspace on it is shown what the host made.
	w, err := m.Prepare(t.Context(), workspace.Spec{Change: change, Project: p, Base: made, Branch: "main", Owner: wt.Self()})
	if err != nil {
		t.Fatal(err)
	}
	if out := wt.Edit(t, w, wt.Exec("git status --porcelain; git log --format=%H")); out != string(made)+"\n"+string(head)+"\n" {
		t.Errorf("git says %q", out)
	}
}

// plantTraps makes a repository run something with every git that honours its settings.
func plantTraps(t *testing.T, top string) {
	t.Helper()
	trap := filepath.Join(t.TempDir(), "sprung")
	script := "touch " + trap + "; :"
	wt.Files(t, top, map[string]string{".git/info/attributes": "* filter=trap diff=trap\n"})
	for _, kv := range [][2]string{
		{"filter.trap.clean", script + "; cat"}, {"filter.trap.smudge", script + "; cat"}, {"diff.trap.textconv", script + "; cat"},
		{"core.fsmonitor", script}, {"diff.external", script}, {"core.alternateRefsCommand", script},
	} {
		wt.Git(t, top, "config", kv[0], kv[1])
	}
	wt.Files(t, top, map[string]string{".git/hooks/reference-transaction": "x+#!/bin/sh\n" + script + "\n", ".git/hooks/post-index-change": "x+#!/bin/sh\n" + script + "\n"})
	t.Cleanup(func() {
		if _, err := os.Stat(trap); err == nil && !t.Skipped() {
			t.Error("something of the repository's own ran")
		}
	})
}

func TestARepositoryInsideIsNotTakenAlong(t *testing.T) {
	m := manager(t)
	p, head := wt.Project(t, base)
	wt.Files(t, p.Top, map[string]string{"inner/file": "1"})
	wt.Git(t, filepath.Join(p.Top, "inner"), "init", "-q")
	wt.Git(t, filepath.Join(p.Top, "inner"), "add", ".")
	wt.Git(t, filepath.Join(p.Top, "inner"), "commit", "-qm", "x")
	_, err := m.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), anything)
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "inner") {
		t.Errorf("error is %v", err)
	}
}

func TestNothingUncommittedIsTheHeadItself(t *testing.T) {
	m := manager(t)
	p, head := wt.Project(t, base)
	got, err := m.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), anything)
	if err != nil || got != head {
		t.Errorf("%s, %v", got, err)
	}
}

// anything lets all be taken along.
func anything(git.Dir, []git.Write) error { return nil }
