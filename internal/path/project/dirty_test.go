package project_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/conversion"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestDirtyNamesWhatIsNotInTheCopy(t *testing.T) {
	r := reader(t)
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
	before := wt.Photo(t, top)
	want := []string{"a", "b", "c", "d", "deep/er/u", "e", "new\nline", "staged", "x.o"}
	got, err := r.Dirty(t.Context(), p, head, conversion.Settings{})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("dirty %q, %v; want %q", got, err, want)
	}

	at := time.Unix(1_700_000_000, 0)
	host, err := r.Repositories.Open(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("not this")
	_, err = r.IncludeDirty(t.Context(), p, change, head, at, conversion.Settings{}, func(_ git.Dir, writes []git.Write) error {
		if len(writes) != len(want) {
			t.Errorf("looked at %d paths", len(writes))
		}
		return refused
	})
	if refs, rerr := host.Refs(t.Context(), repository.BaseRef(change)); !errors.Is(err, refused) || rerr != nil || len(refs) != 0 {
		t.Errorf("what was refused is kept: %v, %v, %v", refs, err, rerr)
	}
	made, err := r.IncludeDirty(t.Context(), p, change, head, at, conversion.Settings{}, anything)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.IncludeDirty(t.Context(), p, change, head, at, conversion.Settings{}, anything)
	if err != nil || again != made {
		t.Errorf("made again: %s and %s, %v", made, again, err)
	}
	if wt.Photo(t, top) != before {
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
	r := reader(t)
	p, head := wt.Project(t, base)
	wt.Files(t, p.Top, map[string]string{"inner/file": "1"})
	wt.Git(t, filepath.Join(p.Top, "inner"), "init", "-q")
	wt.Git(t, filepath.Join(p.Top, "inner"), "add", ".")
	wt.Git(t, filepath.Join(p.Top, "inner"), "commit", "-qm", "x")
	_, err := r.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), conversion.Settings{}, anything)
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "inner") {
		t.Errorf("error is %v", err)
	}
}

func TestNothingUncommittedIsTheHeadItself(t *testing.T) {
	r := reader(t)
	p, head := wt.Project(t, base)
	got, err := r.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), conversion.Settings{}, anything)
	if err != nil || got != head {
		t.Errorf("%s, %v", got, err)
	}
}

// anything lets all be taken along.
func anything(git.Dir, []git.Write) error { return nil }

// A checkout that git has converted is not uncommitted work; what is edited there is, and is not taken along in bytes that git would
// not store. Nothing of the person's runs to tell.
func TestAConvertedCheckoutIsNoUncommittedWork(t *testing.T) {
	r := reader(t)
	p, _ := wt.Project(t, map[string]string{
		".gitattributes": "*.bat text eol=crlf\n*.id ident\n*.bin filter=trap\n", "a.bat": "one\ntwo\n", "b.bat": "one\n", "c.id": "$Id$\n", "d.bin": "pointer\n", "e.bin": "pointer\n", "f.bin": "pointer\n", "g": "1\n",
	})
	top, head := p.Top, git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
	wt.Git(t, top, "config", "filter.trap.smudge", "sed s/pointer/smudged/")
	wt.Git(t, top, "config", "filter.trap.clean", "sed s/smudged/pointer/")
	for _, f := range []string{"a.bat", "b.bat", "c.id", "d.bin", "e.bin", "f.bin"} {
		if err := os.Remove(filepath.Join(top, f)); err != nil {
			t.Fatal(err)
		}
	}
	wt.Git(t, top, "checkout", "-q", "--", ".")
	long := time.Now().Add(-time.Hour)
	for _, f := range []string{"a.bat", "b.bat", "c.id", "d.bin", "e.bin"} {
		if err := os.Chtimes(filepath.Join(top, f), long, long); err != nil {
			t.Fatal(err)
		}
	}
	wt.Git(t, top, "update-index", "-q", "--refresh")
	last, err := os.Stat(filepath.Join(top, "f.bin"))
	if err != nil {
		t.Fatal(err)
	}
	later := last.ModTime().Add(10 * time.Millisecond) // a machine may be so fast that both have one stamp
	if err := os.Chtimes(filepath.Join(top, ".git/index"), later, later); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(top, "d.bin")); err != nil || string(text) != "smudged\n" {
		t.Fatalf("%q, %v", text, err)
	}
	plantTraps(t, top)
	wt.Files(t, top, map[string]string{".git/info/attributes": ""}) // its traps stay on *.bin alone
	s, err := conversion.Read(t.Context(), p, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		write   map[string]string
		dirty   []string
		refused string // by --include-dirty; "" = taken along
	}{
		{map[string]string{"g": "2\n"}, []string{"g"}, ""},
		{map[string]string{"b.bat": "one\r\nmine\r\n"}, []string{"b.bat", "g"}, "b.bat"},
		{map[string]string{"e.bin": "mine\n"}, []string{"b.bat", "e.bin", "g"}, "b.bat"},
	} {
		wt.Files(t, top, c.write)
		got, err := r.Dirty(t.Context(), p, head, s)
		if err != nil || !slices.Equal(got, c.dirty) {
			t.Errorf("dirty %q, %v; want %q", got, err, c.dirty)
		}
		_, err = r.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), s, anything)
		if c.refused == "" && err != nil || c.refused != "" && (problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestAttributesThatAreNotCommittedCountBesideOnesThatAreDeleted(t *testing.T) {
	r := reader(t)
	p, _ := wt.Project(t, map[string]string{"a/.gitattributes": "*.x text\n", "z/.gitattributes": "*.x text\n", "z/one.txt": "1\n"})
	head := git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
	if err := os.Remove(filepath.Join(p.Top, "a/.gitattributes")); err != nil {
		t.Fatal(err)
	}
	wt.Files(t, p.Top, map[string]string{"z/.gitattributes": "*.txt working-tree-encoding=UTF-16\n", "z/one.txt": "2\r\n"})
	s, err := conversion.Read(t.Context(), p, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), s, anything)
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "z/one.txt") {
		t.Errorf("error is %v", err)
	}
}

// A file that a filter made in the same moment as the index was written may have been written again since: only git, which runs the
// filter, can tell. It is no uncommitted work, and the command that is named makes it sure.
func TestAFilteredFileAsNewAsTheIndexIsToldByTheNamedCommand(t *testing.T) {
	r := reader(t)
	p, _ := wt.Project(t, map[string]string{".gitattributes": "*.bin filter=large\n", "a.bin": "pointer\n", "g": "1\n"})
	top, head := p.Top, git.OID(wt.Git(t, p.Top, "rev-parse", "HEAD"))
	wt.Git(t, top, "config", "filter.large.smudge", "sed s/pointer/smudged/")
	wt.Git(t, top, "config", "filter.large.clean", "sed s/smudged/pointer/")
	if err := os.Remove(filepath.Join(top, "a.bin")); err != nil {
		t.Fatal(err)
	}
	wt.Git(t, top, "checkout", "-q", "--", ".")
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(top, "a.bin"), long, long); err != nil {
		t.Fatal(err)
	}
	wt.Git(t, top, "update-index", "-q", "--refresh")
	if err := os.Chtimes(filepath.Join(top, ".git/index"), long, long); err != nil {
		t.Fatal(err)
	}
	wt.Files(t, top, map[string]string{"g": "2\n"})
	s, err := conversion.Read(t.Context(), p, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	take := func() error {
		_, err := r.IncludeDirty(t.Context(), p, change, head, time.Unix(1, 0), s, anything)
		return err
	}

	if got, err := r.Dirty(t.Context(), p, head, s); err != nil || !slices.Equal(got, []string{"g"}) {
		t.Errorf("dirty %q, %v", got, err)
	}
	refused := problem.Of(take())
	if want := "git -C " + top + " status -- a.bin"; refused.Kind != problem.Refused || !strings.Contains(refused.Text, `"a.bin" is changed cannot be told yet`) || refused.Next != want {
		t.Fatalf("%+v; want next %q", refused, want)
	}
	wt.Git(t, top, strings.Fields(refused.Next)[3:]...)
	if err := take(); err != nil {
		t.Errorf("after %s: %v", refused.Next, err)
	}
}
