package trial_test

import (
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/path/trial"
)

func TestATrialOfAGroupHoldsItsFolderAndAnyOtherTheRepository(t *testing.T) {
	moves := func(group string, paths ...string) trial.Moves {
		m := trial.Moves{Group: group}
		for _, p := range paths {
			m.Edits = append(m.Edits, git.Edit{Path: p})
		}
		return m
	}
	back := func(m trial.Moves) trial.Moves { m.Back = true; return m }
	a, b := moves("a", "groups/a/runner/runner.yaml"), moves("b", "groups/b/AGENTS.md", "groups/b/skills/x")
	wide := moves("a", "groups/a/AGENTS.md", "template/AGENTS.md")
	for name, c := range map[string]struct {
		on, next trial.Moves
		beside   bool
	}{
		"another group":                          {a, b, true},
		"another group, the other way round":     {b, a, true},
		"the same group":                         {a, a, false},
		"the same group, elsewhere":              {a, moves("a", "template/AGENTS.md"), false},
		"a person's edit elsewhere":              {a, moves("", "README.md", "groups/ab/AGENTS.md"), true},
		"a person's edit inside":                 {a, moves("", "README.md", "groups/a/AGENTS.md"), false},
		"the folder itself becomes a file":       {a, moves("", "groups/a"), true}, // and then its paths go too, each an edit
		"a folder of a longer name":              {moves("a", "groups/a/x"), moves("", "groups/a-b/x"), true},
		"another group that moves more":          {b, wide, true},
		"beside one that moves more":             {wide, b, false},
		"beside one that moves more, back":       {wide, back(b), true},
		"back, but the wide one holds its paths": {moves("a", "groups/a/x", "groups/b/x"), back(b), false},
		"beside a repository's":                  {moves("", "page.txt"), b, false},
		"beside a repository's, back":            {moves("", "page.txt"), back(b), true},
		"a repository's back beside one":         {moves("", "page.txt"), back(moves("", "other.txt")), false},
		"what is not known":                      {a, moves("b"), false},
		"beside what is not known":               {moves("a"), b, false},
		"beside what is not known, back":         {moves("a"), back(b), false},
	} {
		if is := c.on.Beside(c.next); is != c.beside {
			t.Errorf("%s: %v", name, is)
		}
	}
	for _, c := range []struct {
		of  trial.Moves
		own bool
	}{{a, true}, {b, true}, {wide, false}, {moves("a"), false}, {moves(""), false}, {moves("", "page.txt"), false}, {moves("a", "groups/b/AGENTS.md"), false}} {
		if c.of.Own() != c.own {
			t.Errorf("%+v holds its own folder alone: %t", c.of, !c.own)
		}
	}
}
