package group_test

import (
	"reflect"
	"testing"

	"sallyport/internal/rule/mount"
	"sallyport/internal/who/group"
)

// TestWhatAChangeNewlyShowsAGroupIsFound holds what CH-026 asks about: each folder that a runner.yaml declares anew, or declares to be
// written, wherever in the workspace it stands.
func TestWhatAChangeNewlyShowsAGroupIsFound(t *testing.T) {
	h := newHome(t)
	h.write(t, "groups/ada/runner/runner.yaml", "agent: echo\nmounts: [{path: /srv/had}, {path: /srv/both, readonly: false}]\n")
	h.write(t, "groups/bob/runner/runner.yaml", "agent: echo\n")
	head := h.commit(t)
	base, err := group.Overlay(t.Context(), h.Dir, head, "ada", at("base"))
	if err != nil {
		t.Fatal(err)
	}
	w := worked{h, head, base}

	const own = "template/runner/runner.yaml"
	for name, c := range map[string]struct {
		path, text string
		want       []group.NewWish
	}{
		"a new one":               {own, "agent: echo\nmounts: [{path: /srv/had}, {path: /srv/new}]\n", []group.NewWish{{mount.Wish{Path: "/srv/new", Name: "new"}, "ada"}}},
		"one to be written":       {own, "agent: echo\nmounts: [{path: /srv/new, readonly: false}]\n", []group.NewWish{{mount.Wish{Path: "/srv/new", Name: "new", Write: true}, "ada"}}},
		"one that it could read":  {own, "agent: echo\nmounts: [{path: /srv/had, readonly: false}]\n", []group.NewWish{{mount.Wish{Path: "/srv/had", Name: "had", Write: true}, "ada"}}},
		"less than it had":        {own, "agent: echo\nmounts: [{path: /srv/both}]\n", nil},
		"the same elsewhere":      {own, "agent: echo\nmounts: [{path: /srv/had, at: there}]\n", nil},
		"what cannot be read":     {own, "agent: echo\nmounts: {path: /srv/new}\n", nil},
		"of another group":        {"groups/bob/runner/runner.yaml", "agent: echo\nmounts: [{path: /srv/new}]\n", []group.NewWish{{mount.Wish{Path: "/srv/new", Name: "new"}, "bob"}}},
		"of a group that is new":  {"groups/cat/runner/runner.yaml", "agent: echo\nmounts: [{path: /srv/new}]\n", []group.NewWish{{mount.Wish{Path: "/srv/new", Name: "new"}, "cat"}}},
		"a file that is no entry": {"groups/ada/notes.yaml", "mounts: [{path: /srv/new}]\n", nil},
	} {
		commit := w.work(t, put(c.path, c.text))
		edits, err := w.Edits(t.Context(), base, commit)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := group.NewWishes(t.Context(), w.Dir, "ada", edits); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
