package group_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// worked is a home with the base of a change of ada.
type worked struct {
	home
	head, base git.OID
}

func newWorked(t *testing.T) worked {
	t.Helper()
	h := newHome(t)
	h.write(t, "groups/ada/runner/prompts/system.md", "mine\n")
	h.write(t, "groups/ada/skills/cook/SKILL.md", "cook\n")
	h.write(t, "groups/bob/AGENTS.md", "bob's\n")
	h.write(t, "src/main.go", "package main\n")
	head := h.commit(t)
	base, err := group.Overlay(t.Context(), h.Dir, head, "ada", at("base"))
	if err != nil {
		t.Fatal(err)
	}
	return worked{h, head, base}
}

// at is by with another ref.
func at(ref string) group.By {
	b := by
	b.Ref = "refs/sallyport/" + ref
	return b
}

// work makes what an agent left of the workspace. A write of neither text nor object is a deletion.
func (w worked) work(t *testing.T, writes ...git.Write) git.OID {
	t.Helper()
	return w.commitUpon(t, w.base, writes)
}

func (w worked) commitUpon(t *testing.T, on git.OID, writes []git.Write) git.OID {
	t.Helper()
	made, err := w.Import(t.Context(), "test", git.Import{Ref: "refs/sallyport/work", From: on, Parents: []git.OID{on}, Writes: writes, Message: "x", Author: by.Author, Committer: by.Committer})
	if err != nil {
		t.Fatal(err)
	}
	return made.OID
}

func put(p, text string) git.Write { return git.Write{Path: p, Mode: git.File, Data: git.Text(text)} }
func link(p, to string) git.Write  { return git.Write{Path: p, Mode: git.Symlink, Data: git.Text(to)} }
func gone(p string) git.Write      { return git.Write{Path: p} }

func (w worked) mapped(t *testing.T, commit git.OID) (group.Mapping, error) {
	t.Helper()
	return group.Map(t.Context(), w.Dir, "ada", w.base, commit, w.head, at("offer"))
}

func (w worked) treeOf(t *testing.T, commit git.OID) string {
	t.Helper()
	return gitIn(t, w.top, "rev-parse", string(commit)+"^{tree}")
}

func TestWhatAnAgentEditedAtTheTemplateIsTheGroupsOwn(t *testing.T) {
	w := newWorked(t)
	hook := git.Write{Path: "template/runner/hooks/on-start", Mode: git.Executable, Data: git.Text("#!/bin/sh\n")}
	m, err := w.mapped(t, w.work(t, put("template/runner/prompts/system.md", "greet by name\n"), hook, gone("template/runner/hooks/README.md"),
		gone("template/skills/cook/SKILL.md"), put("template/skills/bake/SKILL.md", "cook\n"), link("template/skills/bake/also", "../keep-notes/SKILL.md"),
		put("groups/ada/AGENTS.md", "be kind\n")))
	if err != nil {
		t.Fatal(err)
	}

	want := strings.Split(`:100644 100644 M groups/ada/AGENTS.md
:100644 000000 D groups/ada/runner/hooks/README.md
:000000 100755 A groups/ada/runner/hooks/on-start
:100644 100644 M groups/ada/runner/prompts/system.md
:000000 100644 A groups/ada/skills/bake/SKILL.md
:000000 120000 A groups/ada/skills/bake/also
:100644 000000 D groups/ada/skills/cook/SKILL.md`, "\n")
	var got []string
	for line := range strings.Lines(gitIn(t, w.top, "diff-tree", "-r", "--no-renames", string(w.head), string(m.Commit))) {
		f := strings.Fields(line)
		got = append(got, strings.Join([]string{f[0], f[1], f[4], f[5]}, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the home would change in\n%s", strings.Join(got, "\n"))
	}
	if parent := gitIn(t, w.top, "rev-parse", "refs/sallyport/offer^"); parent != string(w.head) || m.Head != w.head {
		t.Errorf("it stands upon %s", parent)
	}
	if m.Class != right.Group || m.Lossy || m.Others || m.Rules || len(m.Paths) != 7 || len(m.Edits) != 7 {
		t.Errorf("it is %+v", m)
	}
	if p := m.Paths[1]; p.Path != "template/runner/hooks/README.md" || p.Target != "groups/ada/runner/hooks/README.md" {
		t.Errorf("the second path is %+v", p)
	}
	if _, err := w.mapped(t, w.commitUpon(t, w.head, nil)); problem.KindOf(err) != problem.Refused || !strings.HasPrefix(err.Error(), ".env ") {
		t.Errorf("a commit that lost the overlay: %v", err) // it would undo what the group runs
	}
}

func TestTheClassOfAChangeIsThatOfAllItsPaths(t *testing.T) {
	w := newWorked(t)
	prompt := put("template/runner/prompts/system.md", "x\n")
	for name, test := range map[string]struct {
		writes               []git.Write
		class                right.Class
		lossy, others, rules bool
	}{
		"nothing":                      {},
		"the group's":                  {writes: []git.Write{prompt, put("groups/ada/AGENTS.md", "x\n")}, class: right.Group},
		"the host's":                   {writes: []git.Write{put("src/main.go", "x\n")}, class: right.Host},
		"both":                         {writes: []git.Write{put("src/main.go", "x\n"), prompt}, class: right.Combined},
		"the host's, and no runner":    {writes: []git.Write{put("src/main.go", "x\n"), put("groups/ada/AGENTS.md", "x\n")}, class: right.Host},
		"both, where the group lies":   {writes: []git.Write{put("src/main.go", "x\n"), put("groups/ada/runner/prompts/system.md", "x\n")}, class: right.Combined},
		"another's":                    {writes: []git.Write{put("groups/bob/AGENTS.md", "x\n")}, class: right.Host, others: true},
		"another's that goes":          {writes: []git.Write{gone("groups/bob/AGENTS.md")}, class: right.Host, others: true},
		"a file that moves to another": {writes: []git.Write{gone("template/skills/cook/SKILL.md"), put("groups/bob/SKILL.md", "cook\n")}, class: right.Combined, others: true},
		"a migration":                  {writes: []git.Write{put("migrations/1.sql", "x\n")}, class: right.Host, lossy: true},
		"the rules":                    {writes: []git.Write{gone("policy.yaml")}, class: right.Host, rules: true},
		"what new groups are told":     {writes: []git.Write{put("template/AGENTS.md", "x\n")}, class: right.Host},
	} {
		m, err := w.mapped(t, w.work(t, test.writes...))
		if err != nil || m.Class != test.class || m.Lossy != test.lossy || m.Others != test.others || m.Rules != test.rules {
			t.Errorf("%s: %q %v %v %v, %v", name, m.Class, m.Lossy, m.Others, m.Rules, err)
		}
		if len(test.writes) == 0 && w.treeOf(t, m.Commit) != w.treeOf(t, w.head) {
			t.Errorf("nothing was edited, and the home changes")
		}
	}
}

func TestWhatCannotStandInTheHomeIsRefusedByName(t *testing.T) {
	w := newWorked(t)
	prompt, own := "template/runner/prompts/system.md", "groups/ada/runner/prompts/system.md"
	for name, test := range map[string]struct {
		writes []git.Write
		want   []string
	}{
		"two paths of one target":                 {[]git.Write{put(prompt, "x\n"), put(own, "y\n")}, []string{prompt, own, "both stand for " + own}},
		"the same twice":                          {[]git.Write{put(prompt, "x\n"), put(own, "x\n")}, []string{prompt, own}},
		"one changed, one deleted":                {[]git.Write{put(prompt, "x\n"), gone(own)}, []string{prompt, own}},
		"two that differ by case at their target": {[]git.Write{put("template/runner/new.md", "x\n"), put("groups/ada/runner/NEW.md", "y\n")}, []string{"template/runner/new.md", "groups/ada/runner/NEW.md"}},
		"two folders that differ by case":         {[]git.Write{put("template/runner/new/a", "x\n"), put("groups/ada/runner/New/b", "y\n")}, []string{"template/runner/new/a", "groups/ada/runner/New/b"}},
		"a file where another needs a folder":     {[]git.Write{put("template/runner/new", "x\n"), put("groups/ada/runner/new/b", "y\n")}, []string{"template/runner/new", "groups/ada/runner/new/b"}},
		"a folder where another is a file":        {[]git.Write{put("template/runner/new/b", "x\n"), put("groups/ada/runner/new", "y\n")}, []string{"template/runner/new/b", "groups/ada/runner/new"}},
		"a file in the place of the template":     {[]git.Write{put("template", "x\n")}, []string{"template/runner/"}},
		"the state of the host":                   {[]git.Write{put("src/main.go", "x\n"), put(".state/x", "")}, []string{".state"}},
		"a secret's place":                        {[]git.Write{put("template/runner/.env", "x\n")}, []string{"template/runner/.env"}},
		"a backslash":                             {[]git.Write{put(`template\runner\x`, "x\n")}, []string{"backslash"}},
		"a link out of the runner":                {[]git.Write{link("template/runner/x", "../AGENTS.md")}, []string{"template/runner/x", "leads out"}},
		"a link to another group":                 {[]git.Write{link("template/skills/cook/x", "../../../bob/AGENTS.md")}, []string{"template/skills/cook/x", "leads out"}},
		"a link that goes round":                  {[]git.Write{link("template/runner/x", "a/../../b")}, []string{"template/runner/x", "leads out"}},
		"a link that comes up from another":       {[]git.Write{link("template/runner/d", "."), link("template/runner/x", "d/..")}, []string{"template/runner/x", "leads out"}},
		"a link that comes up from one below":     {[]git.Write{link("template/skills/cook/d", ".."), link("template/skills/cook/x", "d/..")}, []string{"template/skills/cook/x", "leads out"}},
		"a link to the whole system":              {[]git.Write{link("template/runner/x", "/etc/passwd")}, []string{"template/runner/x", "leads out"}},
		"a link of the group's to another":        {[]git.Write{link("groups/ada/data/x", "../../bob/AGENTS.md")}, []string{"groups/ada/data/x", "leads out of groups/ada"}},
		"a link in the place of the skills":       {[]git.Write{gone("template/skills"), link("template/skills", "runner")}, []string{"template/skills", "leads out"}},
	} {
		head := gitIn(t, w.top, "rev-parse", "HEAD")
		m, err := w.mapped(t, w.work(t, test.writes...))
		if problem.KindOf(err) != problem.Refused || problem.Of(err).Next == "" || m.Commit != "" {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; must say %q", name, err, want)
			}
		}
		if now := gitIn(t, w.top, "rev-parse", "HEAD"); now != head {
			t.Errorf("%s: the branch moved", name)
		}
	}
}

func TestFilesThatSpreadWithoutEndAreRefused(t *testing.T) {
	w := newWorked(t)
	tree := git.OID(gitIn(t, w.top, "rev-parse", "HEAD:groups/ada"))
	for range 6 {
		list := ""
		for _, name := range strings.Split("abcdefghij", "") {
			list += "040000 tree " + string(tree) + "\t" + name + "\n"
		}
		tree = w.tree(t, list)
	}
	_, err := w.mapped(t, w.work(t, git.Write{Path: "template/skills/many", Mode: git.Folder, OID: tree}))
	if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "more than 5000 files") {
		t.Errorf("got %v", err)
	}
}

// Somebody edits the group while its agent works: what is offered still stands upon the home as it was, so that landing finds the drift.
func TestWhatMovedInTheHomeIsNeverPartOfWhatIsOffered(t *testing.T) {
	w := newWorked(t)
	commit := w.work(t, put("template/runner/prompts/system.md", "agent's\n"))
	w.write(t, "groups/ada/runner/prompts/system.md", "person's\n")
	w.write(t, "groups/ada/AGENTS.md", "person's\n")
	now := w.commit(t)

	m, err := w.mapped(t, commit)
	if err != nil || len(m.Edits) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	old, err := w.Lookup(t.Context(), w.head, []string{m.Edits[0].Path})
	if err != nil || m.Edits[0].Old != old[0] {
		t.Errorf("the edit is made on %v, not on %v; %v", m.Edits[0].Old, old[0], err)
	}
	newer, err := w.Lookup(t.Context(), now, []string{m.Edits[0].Path})
	if err != nil || newer[0] == m.Edits[0].Old || newer[0] == m.Edits[0].New {
		t.Errorf("landing would find no drift: %v", newer)
	}
	_, err = group.Map(t.Context(), w.Dir, "ada", w.base, commit, now, at("offer"))
	if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "groups/ada/runner/prompts/system.md") {
		t.Errorf("upon a head that the base is no overlay of: %v", err)
	}
}

// workPath draws paths that meet.
var workPath = rapid.Custom(func(t *rapid.T) string {
	root := rapid.SampledFrom([]string{"template/runner", "template/skills", "groups/ada/runner", "groups/ada", "groups/bob", "src", "template"}).Draw(t, "root")
	return root + "/" + rapid.SampledFrom([]string{"x", "x/y", "y", "prompts/system.md", "cook/SKILL.md", "skills/cook/SKILL.md", "main.go"}).Draw(t, "below")
})

// work is edits of a workspace of which none is another's folder.
var anyWork = rapid.Custom(func(t *rapid.T) []git.Write {
	all := map[string]git.Write{}
	for range rapid.IntRange(1, 8).Draw(t, "edits") {
		p := workPath.Draw(t, "path")
		for q := range all {
			if strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/") {
				delete(all, q)
			}
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			all[p] = gone(p)
		case 1:
			all[p] = link(p, "z")
		case 2:
			all[p] = git.Write{Path: p, Mode: git.Executable, Data: git.Text("x")}
		default:
			all[p] = put(p, rapid.SampledFrom([]string{"", "x", "y\n"}).Draw(t, "text"))
		}
	}
	var writes []git.Write
	for _, p := range slices.Sorted(maps.Keys(all)) {
		writes = append(writes, all[p])
	}
	return writes
})

func TestMappingAnyWorkAndUndoingItIsByteIdentical(t *testing.T) {
	w := newWorked(t)
	done := 0
	for seed := range 12 {
		commit := w.work(t, anyWork.Example(seed)...)
		m, err := w.mapped(t, commit)
		if problem.KindOf(err) == problem.Refused {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		done++
		edits, err := w.Edits(t.Context(), w.base, commit)
		if err != nil || len(edits) != len(m.Edits) || len(edits) != len(m.Paths) {
			t.Fatalf("%d edits are %d: %v", len(edits), len(m.Edits), err)
		}
		back := make([]git.Write, len(m.Edits))
		for i, e := range m.Edits {
			back[i] = git.Write{Path: e.Path, Mode: e.Old.Mode, OID: e.Old.OID}
			host := m.Class == right.Group && !strings.HasPrefix(e.Path, "groups/ada/")
			if host {
				t.Errorf("seed %d: a group's change has %q", seed, e.Path)
			}
		}
		if undone := w.commitUpon(t, m.Commit, back); w.treeOf(t, undone) != w.treeOf(t, w.head) {
			t.Errorf("seed %d: undoing %v leaves another tree", seed, m.Edits)
		}
		if again, err := w.mapped(t, commit); err != nil || again.Commit != m.Commit {
			t.Errorf("seed %d: a second time it is %s, not %s; %v", seed, again.Commit, m.Commit, err)
		}
	}
	if done < 4 {
		t.Error(fmt.Sprint("only ", done, " were mapped"))
	}
}
