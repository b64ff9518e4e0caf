package group_test

import (
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/who/group"
)

func TestWhatLandedOfAGroupIsCopiedToTheTemplateAlone(t *testing.T) {
	w := newWorked(t)
	m, err := w.mapped(t, w.work(t, put("template/runner/prompts/system.md", "greet by name\n"), gone("template/runner/hooks/README.md"),
		git.Write{Path: "template/runner/hooks/on-start", Mode: git.Executable, Data: git.Text("#!/bin/sh\n")}, put("template/skills/bake/SKILL.md", "bake\n"),
		put("groups/ada/AGENTS.md", "be kind\n"), put("src/main.go", "package x\n")))
	if err != nil {
		t.Fatal(err)
	}
	d, err := group.Promote(t.Context(), w.Dir, m.Commit, "ada", "chg-aaaaaaaa", m.Edits, at("promote"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range d.Edits {
		got = append(got, e.Path)
		mine, err := w.Lookup(t.Context(), m.Commit, []string{strings.Replace(e.Path, "template", "groups/ada", 1)})
		if err != nil || mine[0] != e.New {
			t.Errorf("%s is %v, and not as it landed", e.Path, e.New)
		}
	}
	want := []string{"template/runner/hooks/README.md", "template/runner/hooks/on-start", "template/runner/prompts/system.md", "template/skills/bake/SKILL.md"}
	if !slices.Equal(got, want) || d.Base != m.Commit || gitIn(t, w.top, "rev-parse", "refs/sallyport/promote^") != string(m.Commit) {
		t.Errorf("it changes %q upon %s", got, d.Base)
	}
	if want := "promote chg-aaaaaaaa: runner/hooks/README.md, runner/hooks/on-start, runner/prompts/system.md and 1 more → template\n"; d.Message != want {
		t.Errorf("it says %q", d.Message)
	}
	if again, err := group.Promote(t.Context(), w.Dir, d.Commit, "ada", "chg-aaaaaaaa", m.Edits, at("promote")); err != nil || len(again.Edits) != 0 || again.Commit != "" {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	// The template stays otherwise as it is, where it differs from the group.
	if text := gitIn(t, w.top, "show", string(d.Commit)+":template/AGENTS.md"); text != gitIn(t, w.top, "show", string(w.head)+":template/AGENTS.md") {
		t.Errorf("the words of the template are %q", text)
	}
}

// Where the template has a file as the group had it, the card of the change has shown what becomes of it; where it has another, nobody has.
func TestAPromotionSaysWhetherItsCardHasShownIt(t *testing.T) {
	w := newWorked(t)
	m, err := w.mapped(t, w.work(t, put("template/skills/bake/SKILL.md", "bake\n")))
	if err != nil {
		t.Fatal(err)
	}
	for name, unseen := range map[string]bool{"skills/other/SKILL.md": false, "skills/bake/SKILL.md": true} {
		head := w.commitUpon(t, m.Commit, []git.Write{put("template/"+name, "never tell a password\n")})
		d, err := group.Promote(t.Context(), w.Dir, head, "ada", "chg-aaaaaaaa", m.Edits, at("promote"))
		if err != nil || len(d.Edits) != 1 || d.Unseen != unseen {
			t.Errorf("beside %s: %+v, %v", name, d, err)
		}
	}
}

func TestThereIsNothingToPromoteWhereRunnerAndSkillsAreUntouched(t *testing.T) {
	w := newWorked(t)
	m, err := w.mapped(t, w.work(t, put("groups/ada/AGENTS.md", "be kind\n"), put("groups/ada/runners/x", "x\n"), put("src/main.go", "x\n"), put("groups/cody/runner/x", "x\n")))
	if err != nil {
		t.Fatal(err)
	}
	if all := group.Promotable("ada", m.Edits); len(all) != 0 {
		t.Errorf("the template could have %v", all)
	}
	if d, err := group.Promote(t.Context(), w.Dir, m.Commit, "ada", "chg-aaaaaaaa", m.Edits, at("promote")); err != nil || d.Commit != "" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestAPromotionTakesNothingFromTheTemplateThatDidNotLand(t *testing.T) {
	w := newWorked(t)
	m, err := w.mapped(t, w.work(t, put("template/runner/lib", "a file\n")))
	if err != nil {
		t.Fatal(err)
	}
	head := w.commitUpon(t, m.Commit, []git.Write{put("template/runner/lib/x", "a file in a folder\n")})
	_, err = group.Promote(t.Context(), w.Dir, head, "ada", "chg-aaaaaaaa", m.Edits, at("promote"))
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "template/runner/lib/x of the template is in its way") || problem.Of(err).Next == "" {
		t.Errorf("got %v", err)
	}
}
