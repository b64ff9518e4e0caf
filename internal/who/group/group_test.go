package group_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/config"
	"sallyport/internal/who/group"
)

var by = group.By{
	Ref:       "refs/sallyport/groups/test",
	Author:    git.Signature{Name: "P", Email: "p@example.org", At: time.Unix(1_700_000_000, 0)},
	Committer: git.Signature{Name: "P", Email: "p@example.org", At: time.Unix(1_700_000_000, 0)},
}

// gitIn runs the real git as a person would.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(out, "\n")
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true",
		"GIT_AUTHOR_NAME=P", "GIT_AUTHOR_EMAIL=p@example.org", "GIT_COMMITTER_NAME=P", "GIT_COMMITTER_EMAIL=p@example.org")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// home is a person's home, checked out.
type home struct {
	git.Project
	git.Dir
	top  string
	user string // the person's own home folder, with their git configuration
}

// newHome makes a home with a group ada of echo and a group cody of codex.
func newHome(t *testing.T) home {
	t.Helper()
	h := home{top: t.TempDir(), user: t.TempDir()}
	gitIn(t, h.top, "init", "-q", "-b", "main")
	var err error
	if h.Project, err = git.Open(t.Context(), h.top); err != nil {
		t.Fatal(err)
	}
	h.Dir = h.Common(disk.Ops{})
	files, err := group.NewHome([]group.Beginning{{Folder: "ada"}, {Folder: "cody", Agent: "codex"}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := group.MakeHome(t.Context(), h.Dir, files, by)
	if err != nil {
		t.Fatal(err)
	}
	gitIn(t, h.top, "reset", "-q", "--hard", string(made.OID))
	return h
}

func (h home) head(t *testing.T) git.OID {
	t.Helper()
	return git.OID(gitIn(t, h.top, "rev-parse", "HEAD"))
}

// write writes a file of the work tree.
func (h home) write(t *testing.T, name, text string) {
	t.Helper()
	at := filepath.Join(h.top, name)
	disktest.Put(t, at, text, 0o644)
}

func (h home) commit(t *testing.T) git.OID {
	t.Helper()
	gitIn(t, h.top, "add", "-A")
	gitIn(t, h.top, "commit", "-q", "-m", "by hand")
	return h.head(t)
}

func TestANewHomeIsOneCommitWithItsTemplateAndItsGroups(t *testing.T) {
	h := newHome(t)
	if got := gitIn(t, h.top, "log", "--format=%s|%an|%P"); got != "Make a home for agents|P|" {
		t.Errorf("the history is %q", got)
	}
	if got := gitIn(t, h.top, "status", "--porcelain", "--ignored"); got != "" {
		t.Errorf("the work tree differs: %q", got)
	}
	if got := gitIn(t, h.top, "show", "HEAD:.gitignore"); got != ".state/\n.env\n.env.*" {
		t.Errorf(".gitignore is %q", got)
	}
	want := strings.Fields(`.gitignore groups/ada/AGENTS.md groups/ada/runner/hooks/README.md groups/ada/runner/prompts/system.md groups/ada/runner/runner.yaml
		groups/ada/skills/keep-notes/SKILL.md groups/cody/AGENTS.md groups/cody/runner/hooks/README.md groups/cody/runner/prompts/system.md
		groups/cody/runner/runner.yaml groups/cody/skills/keep-notes/SKILL.md policy.yaml sallyport.yaml template/AGENTS.md template/runner/hooks/README.md
		template/runner/prompts/system.md template/runner/runner.yaml template/skills/keep-notes/SKILL.md`)
	if got := strings.Fields(gitIn(t, h.top, "ls-tree", "-r", "--name-only", "HEAD")); !reflect.DeepEqual(got, want) {
		t.Errorf("the files are %q", got)
	}
	if _, err := config.Open(h.top, disk.Ops{}); err != nil {
		t.Error(err)
	}

	groups, odd, err := group.List(t.Context(), h.Dir, h.head(t))
	if err != nil || !reflect.DeepEqual(groups, []group.Folder{"ada", "cody"}) || odd != nil {
		t.Errorf("the groups are %q, odd %q, %v", groups, odd, err)
	}
	for folder, agent := range map[group.Folder]config.RunnerAgent{"ada": config.Echo, "cody": "codex"} {
		if g := h.read(t, folder); g.Runner.Agent != agent {
			t.Errorf("%s is answered for by %q", folder, g.Runner.Agent)
		}
	}
}

func (h home) read(t *testing.T, folder group.Folder) group.Group {
	t.Helper()
	tree, err := group.FindTree(t.Context(), h.Dir, h.head(t), folder)
	if err != nil {
		t.Fatal(err)
	}
	g, err := group.Read(t.Context(), h.Dir, folder, tree)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAGroupIsNamedByWhatAPersonCallsIt(t *testing.T) {
	for _, test := range []struct {
		name   string
		others []group.Folder
		want   group.Folder
	}{
		{"Ada", nil, "ada"},
		{"The  Kitchen's helper!", nil, "the-kitchen-s-helper"},
		{"../../etc/passwd", nil, "etc-passwd"},
		{".git", nil, "git"},
		{"日本", nil, "agent"},
		{"all", nil, "all-2"},
		{"template", []group.Folder{"template-2"}, "template-3"},
		{"ada", []group.Folder{"ada", "ada-2"}, "ada-3"},
		{strings.Repeat("a", 100), nil, group.Folder(strings.Repeat("a", 32))},
		{strings.Repeat("a", 100), []group.Folder{group.Folder(strings.Repeat("a", 32))}, group.Folder(strings.Repeat("a", 30) + "-2")},
		{strings.Repeat("a", 29) + " bcd", []group.Folder{group.Folder(strings.Repeat("a", 29) + "-bc")}, group.Folder(strings.Repeat("a", 29) + "-2")},
	} {
		got := group.ChooseFolder(test.name, test.others)
		if _, err := group.ParseFolder(string(got)); got != test.want || err != nil {
			t.Errorf("%q becomes %q, not %q; %v", test.name, got, test.want, err)
		}
	}
	for _, bad := range []string{"", "Ada", "a_b", "a/b", "..", "-a", "a-", "a--b", "a.b", "a\n", "host", "self", "none", strings.Repeat("a", 33)} {
		if _, err := group.ParseFolder(bad); problem.KindOf(err) != problem.Usage {
			t.Errorf("%q was taken: %v", bad, err)
		}
	}
}

func TestAGroupIsACopyOfTheTemplateThatIsCommitted(t *testing.T) {
	h := newHome(t)
	h.write(t, "template/skills/cook/SKILL.md", "cook\n")
	h.write(t, "template/runner/runner.yaml", "# mine\nagent: echo\nrounds: 2\n")
	base := h.commit(t)
	h.write(t, "template/AGENTS.md", "never committed\n")

	draft, err := group.Create(t.Context(), h.Dir, base, group.Beginning{Folder: "bob", Agent: "gemini"}, by)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range draft.Edits {
		if !strings.HasPrefix(e.Path, "groups/bob/") || !e.Old.Absent() {
			t.Errorf("it also changes %q", e.Path)
		}
	}
	if got := gitIn(t, h.top, "show", string(draft.Commit)+":groups/bob/runner/runner.yaml"); got != "# mine\nagent: gemini\nrounds: 2" {
		t.Errorf("runner.yaml is %q", got)
	}
	if got := gitIn(t, h.top, "diff-tree", "-r", "--name-only", string(base)+":template", string(draft.Commit)+":groups/bob"); got != "runner/runner.yaml" {
		t.Errorf("the copy differs in %q", got)
	}
	if got := gitIn(t, h.top, "rev-parse", string(draft.Commit)+"^"); got != string(base) || h.head(t) != base {
		t.Errorf("its parent is %s, and the branch at %s, not %s", got, h.head(t), base)
	}
	if _, err := group.Create(t.Context(), h.Dir, base, group.Beginning{Folder: "ada"}, by); problem.KindOf(err) != problem.Conflict {
		t.Errorf("a second ada: %v", err)
	}

	// What changes in the template later reaches no group that is there (SM-014).
	before := h.read(t, "ada").Tree
	h.write(t, "template/runner/prompts/system.md", "another\n")
	h.commit(t)
	if after := h.read(t, "ada").Tree; after != before {
		t.Errorf("the tree of ada moved from %s to %s", before, after)
	}
}

func TestATemplateThatCannotBeCopiedMakesNoGroup(t *testing.T) {
	for name, text := range map[string]string{"no line": "model: x\n", "two lines": "agent: echo\nagent: codex\n", "inside a text": "agent: echo\nmodel: >\nagent: x\n"} {
		h := newHome(t)
		h.write(t, "template/runner/runner.yaml", text)
		_, err := group.Create(t.Context(), h.Dir, h.commit(t), group.Beginning{Folder: "bob", Agent: "pi"}, by)
		if k := problem.KindOf(err); k != problem.Refused && k != problem.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := newHome(t)
	gitIn(t, h.top, "rm", "-rq", "template/runner")
	if _, err := group.Create(t.Context(), h.Dir, h.commit(t), group.Beginning{Folder: "bob"}, by); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "template/runner/runner.yaml") {
		t.Errorf("no template: %v", err)
	}
}

func TestWhatAGroupRunsIsTheTreeOfACommitAndNotTheLiveFolder(t *testing.T) {
	h := newHome(t)
	h.write(t, "groups/ada/runner/hooks/before-send", "#!/bin/sh\ncat\n")
	h.write(t, "groups/ada/runner/hooks/on-start", "#!/bin/sh\ncat\n")
	for _, hook := range []string{"before-send", "on-start"} {
		if err := os.Chmod(filepath.Join(h.top, "groups/ada/runner/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.write(t, "groups/ada/runner/prompts/a.md", "first\n")
	h.commit(t)
	before := h.read(t, "ada")
	if want := gitIn(t, h.top, "rev-parse", "HEAD:groups/ada"); string(before.Tree) != want {
		t.Errorf("the tree is %s, not %s", before.Tree, want)
	}
	var seen []string
	for _, f := range append(before.Hooks, before.Prompts...) {
		seen = append(seen, f.Path)
	}
	if want := []string{"runner/hooks/on-start", "runner/hooks/before-send", "runner/prompts/a.md", "runner/prompts/system.md"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("hooks and prompts are %q", seen)
	}
	if before.Prompts[0].SizeBytes != 6 || before.Instructions == nil || before.Instructions.SizeBytes == 0 {
		t.Errorf("the sizes are %+v, %+v", before.Prompts[0], before.Instructions)
	}

	h.write(t, "groups/ada/runner/runner.yaml", "agent: codex\n")
	gitIn(t, h.top, "add", "-A")
	if after := h.read(t, "ada"); !reflect.DeepEqual(after, before) {
		t.Errorf("what is not committed counts: %+v", after)
	}
	if _, err := group.FindTree(t.Context(), h.Dir, h.head(t), "bob"); problem.KindOf(err) != problem.NotFound {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestWhatAGroupCannotHaveIsNamedWithItsPlace(t *testing.T) {
	runner := "groups/ada/runner/"
	many := func(h home, n int, name func(int) string) {
		for i := range n {
			h.write(t, name(i), "x\n")
		}
	}
	letters := func(i int) string { return string(rune('a'+i/26)) + string(rune('a'+i%26)) }
	for _, test := range []struct {
		what string
		make func(h home)
		want string
	}{
		{"an unknown key", func(h home) { h.write(t, runner+"runner.yaml", "agent: echo\nhooks: [x]\n") }, "groups/ada/runner/runner.yaml:2:1: hooks: there is no such key"},
		{"no runner.yaml", func(h home) { _ = os.Remove(filepath.Join(h.top, runner, "runner.yaml")) }, runner + "runner.yaml: it is missing"},
		{"a large runner.yaml", func(h home) { h.write(t, runner+"runner.yaml", "agent: echo\n#"+strings.Repeat("x", 64<<10)) }, "65536 is the limit"},
		{"a link as runner.yaml", func(h home) { h.link(t, "/etc/passwd", runner+"runner.yaml") }, runner + "runner.yaml: it must be an ordinary file"},
		{"a large prompt", func(h home) { h.write(t, runner+"prompts/b.md", strings.Repeat("x", 64<<10+1)) }, runner + "prompts/b.md: it has 65537 bytes"},
		{"a prompt of bytes", func(h home) { h.write(t, runner+"prompts/b.md", "\xff") }, runner + "prompts/b.md: it is not UTF-8"},
		{"a prompt of another name", func(h home) { h.write(t, runner+"prompts/b.txt", "x") }, runner + "prompts/b.txt: a prompt is an ordinary file whose name ends in .md"},
		{"many prompts", func(h home) { many(h, 32, func(i int) string { return runner + "prompts/" + letters(i) + ".md" }) }, "there are 33 prompts; 32 is the limit"},
		{"a hook that nobody may execute", func(h home) { h.write(t, runner+"hooks/on-start", "#!/bin/sh\n") }, runner + "hooks/on-start: a hook is an ordinary file that may be executed"},
		{"an unknown hook", func(h home) { h.write(t, runner+"hooks/on-end", "#!/bin/sh\n") }, runner + "hooks/on-end: there is no such hook; the hooks are on-start, on-message, before-send"},
		{"a link as a hook", func(h home) { h.link(t, "/bin/sh", runner+"hooks/on-start") }, "a hook is an ordinary file"},
		{"a link as its skills", func(h home) {
			_ = os.RemoveAll(filepath.Join(h.top, "groups/ada/skills"))
			h.link(t, "/etc", "groups/ada/skills")
		}, "groups/ada/skills: it must be a folder"},
		{"a submodule", func(h home) {
			gitIn(t, h.top, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",groups/ada/sub")
		}, "groups/ada/sub: it is a submodule"},
		{"control characters in a name", func(h home) { h.write(t, runner+"hooks/on-\x1b[31m", "x") }, `\x1b`},
	} {
		h := newHome(t)
		test.make(h)
		if test.what == "a submodule" {
			gitIn(t, h.top, "commit", "-q", "-m", "x")
		} else {
			h.commit(t)
		}
		tree, err := group.FindTree(t.Context(), h.Dir, h.head(t), "ada")
		if err != nil {
			t.Fatal(err)
		}
		_, err = group.Read(t.Context(), h.Dir, "ada", tree)
		if k := problem.KindOf(err); err == nil || k != problem.Refused && k != problem.Usage || !strings.Contains(err.Error(), test.want) || problem.Of(err).Next == "" {
			t.Errorf("%s: %v; must say %q", test.what, err, test.want)
		}
	}
}

func (h home) link(t *testing.T, to, name string) {
	t.Helper()
	at := filepath.Join(h.top, name)
	_ = os.Remove(at)
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func TestWhatLiesBesideTheGroupsAndIsNoneIsTold(t *testing.T) {
	h := newHome(t)
	h.write(t, "groups/README.md", "words\n")
	h.write(t, "groups/Bad_Name/x", "")
	h.write(t, "groups/eve", "a file\n")
	groups, odd, err := group.List(t.Context(), h.Dir, h.commit(t))
	if err != nil || !reflect.DeepEqual(groups, []group.Folder{"ada", "cody"}) || !reflect.DeepEqual(odd, []string{"Bad_Name", "README.md", "eve"}) {
		t.Errorf("got %q, %q, %v", groups, odd, err)
	}

	ada, list := gitIn(t, h.top, "rev-parse", "HEAD:groups/ada"), ""
	for i := range 1_001 {
		list += fmt.Sprintf("040000 tree %s\tg%04d\n", ada, i)
	}
	many := h.tree(t, "040000 tree "+string(h.tree(t, list))+"\tgroups\n")
	if _, _, err := group.List(t.Context(), h.Dir, many); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "1001 groups; 1000 is the limit") {
		t.Errorf("got %v", err)
	}
}

// tree makes a tree of the lines that git mktree reads.
func (h home) tree(t *testing.T, list string) git.OID {
	t.Helper()
	cmd := exec.Command("git", "mktree")
	cmd.Dir, cmd.Stdin = h.top, strings.NewReader(list)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return git.OID(strings.TrimSpace(string(out)))
}

// A few objects can stand for any number of files.
func TestATreeThatStandsForMillionsOfFilesIsRefusedAtOnce(t *testing.T) {
	h := newHome(t)
	tree := git.OID(gitIn(t, h.top, "rev-parse", "HEAD:groups/ada"))
	for range 12 {
		list := ""
		for _, name := range strings.Split("abcdefghij", "") {
			list += "040000 tree " + string(tree) + "\t" + name + "\n"
		}
		tree = h.tree(t, list)
	}
	if _, err := group.Read(t.Context(), h.Dir, "ada", tree); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "more than 5000 files and folders") {
		t.Errorf("got %v", err)
	}
}

func TestDriftFromTheTemplateIsToldByPathAndKind(t *testing.T) {
	h := newHome(t)
	if all, err := group.CompareTemplate(t.Context(), h.Dir, h.head(t), "ada"); err != nil || len(all) != 0 {
		t.Errorf("a new group differs: %+v, %v", all, err)
	}
	h.write(t, "groups/ada/AGENTS.md", "mine\n")
	h.write(t, "groups/ada/skills/cook/SKILL.md", "cook\n")
	h.write(t, "groups/ada/elsewhere", "not from the template\n")
	h.write(t, "groups/ada/data/more", "not from the template either\n")
	h.write(t, "template/elsewhere", "not for groups\n")
	gitIn(t, h.top, "rm", "-q", "groups/ada/runner/prompts/system.md")
	if err := os.Chmod(filepath.Join(h.top, "groups/ada/runner/hooks/README.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	base := h.commit(t)
	h.write(t, "groups/ada/AGENTS.md", "not committed\n")

	all, err := group.CompareTemplate(t.Context(), h.Dir, base, "ada")
	var got []string
	for _, d := range all {
		got = append(got, string(d.Kind)+" "+d.Path)
	}
	want := []string{"changed AGENTS.md", "added data/more", "added elsewhere", "mode runner/hooks/README.md", "removed runner/prompts/system.md", "added skills/cook/SKILL.md"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}

	gitIn(t, h.top, "rm", "-rq", "template")
	if all, err := group.CompareTemplate(t.Context(), h.Dir, h.commit(t), "cody"); err != nil || len(all) != 5 || all[0].Kind != group.Added {
		t.Errorf("without a template: %+v, %v", all, err)
	}
}

// TestTheSkillsOfAGroupAreReadWithWhatTheySayOfThemselves holds SM-011: in order, whatever else lies beside them.
func TestTheSkillsOfAGroupAreReadWithWhatTheySayOfThemselves(t *testing.T) {
	h := newHome(t)
	h.write(t, "groups/ada/skills/zz/SKILL.md", "Sing.\n")
	h.write(t, "groups/ada/skills/bake/SKILL.md", "---\nname: bake\ndescription: Bake a cake.\n---\n\nTake flour.\n")
	h.write(t, "groups/ada/skills/bake/more/SKILL.md", "---\ndescription: No skill.\n---\n")
	h.write(t, "groups/ada/skills/README.md", "---\ndescription: No skill.\n---\n")
	tree, err := group.FindTree(t.Context(), h.Dir, h.commit(t), "ada")
	if err != nil {
		t.Fatal(err)
	}
	g, err := group.Read(t.Context(), h.Dir, "ada", tree)
	if err != nil || len(g.Skills) != 3 {
		t.Fatalf("%+v, %v", g.Skills, err)
	}
	if g.Skills[0] != (group.Skill{Name: "bake", Description: "Bake a cake.", Path: "bake/SKILL.md"}) ||
		!strings.HasPrefix(g.Skills[1].Description, "Remember something for a later conversation") || g.Skills[2] != (group.Skill{Name: "zz", Path: "zz/SKILL.md"}) {
		t.Errorf("%+v", g.Skills)
	}

	for i := range 100 {
		h.write(t, fmt.Sprintf("groups/ada/skills/s%d/SKILL.md", i), "x\n")
	}
	if tree, err = group.FindTree(t.Context(), h.Dir, h.commit(t), "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := group.Read(t.Context(), h.Dir, "ada", tree); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "there are 103 skills; 100 is the limit") {
		t.Errorf("%v", err)
	}
}
