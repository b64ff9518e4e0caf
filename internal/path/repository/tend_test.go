package repository_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/path/repository"
	wt "sallyport/internal/path/workspace/workspacetest"
)

// put makes a checkpoint on a commit, in a pack of its own.
func put(t *testing.T, host git.Dir, n int, on git.OID) git.OID {
	t.Helper()
	made, err := host.Import(t.Context(), "test:import", git.Import{
		Ref: fmt.Sprintf("refs/sallyport/chg-%08d/checkpoints/1", n), From: on, Parents: []git.OID{on},
		Writes: []git.Write{{Path: "own", Mode: git.File, Data: git.Text(fmt.Sprint("written by ", n))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.OID
}

func files(t *testing.T, pattern ...string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

func TestPacksOfTheHostBecomeFewAndHoldWhatTheyHeld(t *testing.T) {
	p, first := wt.Project(t, base)
	r := store(t)
	r.Most = 4
	host, err := r.Open(t.Context(), p, first)
	if err != nil {
		t.Fatal(err)
	}
	var made []git.OID
	for n := range 5 {
		made = append(made, put(t, host, n, first))
	}
	loose := wt.Git(t, host.Path, "commit-tree", "-m", "that no ref names", string(first)+"^{tree}")
	held, err := filepath.Glob(filepath.Join(host.Path, "objects/pack/*.pack"))
	if err != nil || len(held) != 5 {
		t.Fatalf("%d packs, %v", len(held), err)
	}
	keep := strings.TrimSuffix(held[0], ".pack") + ".keep" // an import is about to name it
	disktest.Put(t, keep, "", 0o600)
	if err := r.Tend(t.Context()); err != nil || files(t, host.Path, "objects/pack/*.pack") != 5 {
		t.Fatalf("four packs and one that is kept became others, %v", err)
	}
	made = append(made, put(t, host, 5, first))
	if err := r.Tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := files(t, host.Path, "objects/pack/*.pack"); n != 2 {
		t.Errorf("%d packs are left", n)
	}
	if n := files(t, host.Path, "objects/??/*"); n != 0 {
		t.Errorf("%d loose objects are left", n)
	}
	if _, err := os.Stat(held[0]); err != nil {
		t.Errorf("a pack that an import is about to name is gone: %v", err)
	}
	for _, c := range append(made, git.OID(loose)) {
		wt.Whole(t, host.Path, c)
	}
}

func TestPowerLostWhilePacksBecomeFewLosesNoObject(t *testing.T) {
	p, first := wt.Project(t, base)
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		root := filepath.Join(t.TempDir(), "repos")
		host, err := at(root, repository.Config{}).Open(t.Context(), p, first)
		if err != nil {
			t.Fatal(err)
		}
		var made []git.OID
		for n := range 3 {
			made = append(made, put(t, host, n, first))
		}
		weak := at(root, repository.Config{Most: 2, Ops: c.Ops()})
		if _, err := disktest.Run(func() error { return weak.Tend(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		for _, c := range made {
			wt.Whole(t, host.Path, c)
		}
		r := at(root, repository.Config{Most: 2})
		if err := r.Tend(t.Context()); err != nil || files(t, host.Path, "objects/pack/*.pack") > 2 {
			t.Errorf("%d packs are left, %v", files(t, host.Path, "objects/pack/*.pack"), err)
		}
		for _, c := range made {
			wt.Whole(t, host.Path, c)
		}
	})
	for _, op := range []string{"repository:merge", "repository:sync", "repository:drop", "repository:loose"} {
		if !slices.Contains(seen, op) {
			t.Errorf("no %s among %q", op, seen)
		}
	}
}

func TestBasesThatAnotherReachesAreLetGoOnceThereAreMany(t *testing.T) {
	p, first := wt.Project(t, base)
	r := store(t)
	r.Most = 3
	wt.Commits(t, p, 8)
	all := strings.Fields(wt.Git(t, p.Top, "rev-list", "--reverse", "HEAD"))
	r.Shown = func(each func(string)) error { each(repository.ViewObjects(r.Host(p), git.OID(all[2]))); return nil }
	wt.Git(t, p.Top, "checkout", "-q", "-b", "side", string(first))
	side := wt.Commits(t, p, 1)
	host, err := r.Open(t.Context(), p, side)
	if err != nil {
		t.Fatal(err)
	}
	for i, head := range all {
		if _, err := r.Open(t.Context(), p, git.OID(head)); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-20) * time.Hour)
		if err := os.Chtimes(filepath.Join(host.Path, "bases/views", head), at, at); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-30 * time.Hour) // nobody was on it for longer than on any other
	if err := os.Chtimes(filepath.Join(host.Path, "bases/views", string(side)), old, old); err != nil {
		t.Fatal(err)
	}
	if err := r.Tend(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	entries, err := os.ReadDir(filepath.Join(host.Path, "bases/views"))
	for _, e := range entries {
		left[e.Name()] = true
	}
	want := []string{string(side), all[2], all[6], all[7], all[8]} // a line of its own, one that is shown, the last used
	if slices.Sort(want); err != nil || !slices.Equal(slices.Sorted(maps.Keys(left)), want) {
		t.Errorf("left %q, want %q, %v", slices.Sorted(maps.Keys(left)), want, err)
	}
	for _, c := range append(all, string(side)) {
		wt.Whole(t, host.Path, git.OID(c))
	}
	wt.Whole(t, filepath.Join(host.Path, "bases"), git.OID(all[8]))
}

// A base whose packs went into those of a later one is whole again once the later one is gone.
func TestABaseOutlivesTheOneThatGrewFromIt(t *testing.T) {
	p, first := wt.Project(t, base)
	r := at(filepath.Join(t.TempDir(), "repos"), repository.Config{Keeps: time.Nanosecond})
	var all []git.OID
	for range 4 {
		all = append(all, wt.Commits(t, p, 1))
		if err := r.Keep(t.Context(), p, id.Change(fmt.Sprintf("chg-%08d", len(all))), all[len(all)-1]); err != nil {
			t.Fatal(err)
		}
	}
	host := r.Host(p)
	for i, c := range all[2:] {
		wt.Git(t, host.Path, "update-ref", "-d", repository.BaseRef(id.Change(fmt.Sprintf("chg-%08d", i+3))))
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(host.Path, "bases/views", string(c)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Trim(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if n := files(t, host.Path, "bases/views", string(all[3])); n != 0 {
		t.Error("the later base is still held")
	}
	for _, c := range append(all[:2:2], first) {
		wt.Whole(t, host.Path, c)
	}
}
