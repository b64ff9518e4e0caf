package layer_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	wt "sallyport/internal/path/workspace/workspacetest"
)

func TestALayerThatSomethingStandsOnOrSomebodyHoldsStays(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	files := wt.Many(10)
	var commits []git.OID
	for i := range 3 {
		files["new"] = strings.Repeat("x", i)
		commits = append(commits, h.Commit(files))
		k.open(h, commits[i])
	}
	there := func(what string, want ...int) {
		t.Helper()
		if _, err := k.Evict(gittest.Context(t), 0, 0); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, c := range commits {
			got = append(got, k.depth(h, c))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v are left, want %v", what, got, want)
		}
	}
	k.stood = []git.OID{tree(t, h, commits[2])}
	there("with a workspace on the last", 1, 2, 3)
	_, release, err := k.Open(gittest.Context(t), h.Host, tree(t, h, commits[1]), commits[1])
	if err != nil {
		t.Fatal(err)
	}
	k.stood = nil
	there("while the second is held", 1, 2, 0)
	release()
	there("once nobody needs any", 0, 0, 0)
	k.open(h, commits[2])
	there("made again, and not needed", 0, 0, 0)

	k.open(h, commits[0])
	unreadable := errors.New("a record cannot be read")
	k.Standing = func(func(git.OID)) error { return unreadable }
	if _, err := k.Evict(gittest.Context(t), 0, 0); !errors.Is(err, unreadable) {
		t.Errorf("what stands on it is not known: %v", err)
	}
	if entries, err := os.ReadDir(k.Root); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestLayersGoByAgeAndThenByRoomTheLongestUnusedFirst(t *testing.T) {
	k := store(t)
	var trees []git.OID
	for i := range 4 { // of four projects: none stands on another
		h := wt.NewHistory(t)
		commit := h.Commit(map[string]string{"big": strings.Repeat("x", 100_000+i)})
		k.open(h, commit)
		trees = append(trees, tree(t, h, commit))
		k.age(trees[i], time.Duration(4-i)*time.Hour)
	}
	left := func() (out []int) {
		for _, l := range k.all() {
			out = append(out, slices.Index(trees, l.Tree))
		}
		return out
	}
	each := k.all()[0].Bytes
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
		freed, err := k.Evict(gittest.Context(t), step.keep, step.quota)
		if err != nil {
			t.Fatal(err)
		}
		if got := left(); !slices.Equal(got, step.want) {
			t.Fatalf("keep %s, quota %d: left %v, want %v (freed %d)", step.keep, step.quota, got, step.want, freed)
		}
	}
}

func TestALayerIsOfUseWhenItIsOpened(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	commit := h.Commit(map[string]string{"a": "1"})
	k.open(h, commit)
	of := tree(t, h, commit)
	for name, use := range map[string]func() error{"opened": func() error { k.open(h, commit); return nil }, "noted": func() error { return k.NoteUse(of) }} {
		k.age(of, time.Hour)
		if err := use(); err != nil || time.Since(k.all()[0].LastUsed) > 10*time.Minute {
			t.Errorf("%s, it was last used at %s, %v", name, k.all()[0].LastUsed, err)
		}
	}
}

func TestWhatTrimmingWouldRemoveIsWhatItRemoves(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	for i := range 3 {
		commit := h.Commit(map[string]string{"a": "1", "b": strings.Repeat("x", i)})
		if k.open(h, commit); i == 0 { // a workspace stands on it
			k.stood = []git.OID{tree(t, h, commit)}
		}
	}
	all := k.all()
	for _, l := range all {
		k.age(l.Tree, 2*time.Hour)
	}
	would, err := k.Surplus(gittest.Context(t))
	if err != nil || len(would) != 2 || len(k.all()) != 3 {
		t.Fatalf("would remove %v of %v, %v", would, all, err)
	}
	freed, err := k.Trim(gittest.Context(t))
	if left := k.all(); err != nil || freed != would[0].Bytes+would[1].Bytes || len(left) != 1 || left[0].Depth != 1 {
		t.Errorf("freed %d of %v, left %v, %v", freed, would, left, err)
	}
}

func TestLayersOfAProjectThatNothingNeedsAreFew(t *testing.T) {
	k, h := store(t), wt.NewHistory(t)
	k.Spares = 2
	all := wt.Many(30)
	for i := range 9 {
		all["new"] = fmt.Sprint(i)
		k.open(h, h.Commit(all))
		if err := k.Shed(gittest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if n := len(k.all()); n > 6 {
			t.Fatalf("%d layers after %d bases", n, i)
		}
	}
}
