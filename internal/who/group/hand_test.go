package group_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/landing"
	"sallyport/internal/who/group"
)

func (h home) edits(t *testing.T, folder group.Folder) []string {
	t.Helper()
	all, err := group.FindHandEdits(t.Context(), h.Project, h.user, h.head(t), folder)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range all {
		word := string(e.Kind) + " " + e.Path
		if e.Why != "" {
			word = "odd " + e.Path + ": " + e.Why
		}
		told = append(told, word)
	}
	return told
}

func (h home) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(h.top, name)); err != nil {
		t.Fatal(err)
	}
}

func TestHandEditsAreToldByPathAndKind(t *testing.T) {
	h := newHome(t)
	for what, test := range map[string]struct {
		edit func()
		want []string
	}{
		"nothing":              {func() {}, nil},
		"a touched file":       {func() { h.write(t, "groups/ada/AGENTS.md", gitIn(t, h.top, "show", "HEAD:groups/ada/AGENTS.md")+"\n") }, nil},
		"a changed file":       {func() { h.write(t, "groups/ada/AGENTS.md", "mine\n") }, []string{"changed groups/ada/AGENTS.md"}},
		"a removed file":       {func() { h.remove(t, "groups/ada/AGENTS.md") }, []string{"removed groups/ada/AGENTS.md"}},
		"a removed folder":     {func() { h.remove(t, "groups/ada/skills") }, []string{"removed groups/ada/skills/keep-notes/SKILL.md"}},
		"a new file":           {func() { h.write(t, "groups/ada/x/y", "") }, []string{"added groups/ada/x/y"}},
		"a new file, staged":   {func() { h.write(t, "groups/ada/x/y", ""); gitIn(t, h.top, "add", ".") }, []string{"added groups/ada/x/y"}},
		"staged and undone":    {func() { h.write(t, "groups/ada/x/y", ""); gitIn(t, h.top, "add", "."); h.remove(t, "groups/ada/x") }, nil},
		"a file made a link":   {func() { h.link(t, "/etc/passwd", "groups/ada/AGENTS.md") }, []string{"changed groups/ada/AGENTS.md"}},
		"a file made a folder": {func() { h.remove(t, "groups/ada/AGENTS.md"); h.write(t, "groups/ada/AGENTS.md/x", "") }, []string{"removed groups/ada/AGENTS.md", "added groups/ada/AGENTS.md/x"}},
		"another right":        {func() { _ = os.Chmod(filepath.Join(h.top, "groups/ada/AGENTS.md"), 0o755) }, []string{"mode groups/ada/AGENTS.md"}},
		"what the home ignores": {func() {
			h.write(t, "groups/ada/.env", "KEY=1")
			h.write(t, "groups/ada/.env.local", "KEY=1")
			h.write(t, "groups/ada/.state/x", "")
		}, nil},
		"what the owner ignores": {func() {
			h.write(t, "groups/ada/x.swp", "")
			if err := os.MkdirAll(filepath.Join(h.user, ".config/git"), 0o755); err != nil {
				t.Fatal(err)
			}
			disktest.Put(t, filepath.Join(h.user, ".config/git/ignore"), "*.swp\n", 0o644)
		}, nil},
		"other files": {func() {
			h.write(t, "groups/cody/AGENTS.md", "")
			h.write(t, "groups/adam/x", "")
			h.write(t, "policy.yaml", "")
		}, nil},
		"a skipped file": {func() {
			gitIn(t, h.top, "update-index", "--skip-worktree", "groups/ada/AGENTS.md")
			h.remove(t, "groups/ada/AGENTS.md")
		}, nil},
		"a repository in it": {func() {
			h.write(t, "groups/ada/skills/x/y", "")
			gitIn(t, filepath.Join(h.top, "groups/ada/skills/x"), "init", "-q")
			gitIn(t, filepath.Join(h.top, "groups/ada/skills/x"), "add", "y")
			gitIn(t, filepath.Join(h.top, "groups/ada/skills/x"), "commit", "-qm", "x")
		}, []string{"odd groups/ada/skills/x/: it is a git repository of its own"}},
		"a folder that is a link": {func() {
			_ = os.Rename(filepath.Join(h.top, "groups/ada/skills/keep-notes"), filepath.Join(h.user, "away"))
			h.link(t, filepath.Join(h.user, "away"), "groups/ada/skills/keep-notes")
		}, []string{"added groups/ada/skills/keep-notes", "odd groups/ada/skills/keep-notes/SKILL.md: it is reached through a symbolic link"}},
		"a large file":       {func() { h.write(t, "groups/ada/x", strings.Repeat("x", 16<<20+1)) }, []string{"odd groups/ada/x: it has 16777217 bytes; 16777216 is the limit"}},
		"a name of no text":  {func() { h.write(t, "groups/ada/\xff", "") }, []string{"odd groups/ada/\xff: its name is not UTF-8"}},
		"a pipe and a plain": {func() { mkfifo(t, filepath.Join(h.top, "groups/ada/pipe")); h.write(t, "groups/ada/x", "") }, []string{"added groups/ada/x"}},
		"a file made a pipe": {func() { h.remove(t, "groups/ada/AGENTS.md"); mkfifo(t, filepath.Join(h.top, "groups/ada/AGENTS.md")) }, []string{"odd groups/ada/AGENTS.md: it is neither a file nor a link"}},
	} {
		test.edit()
		if got := h.edits(t, "ada"); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %q, not %q", what, got, test.want)
		}
		gitIn(t, h.top, "update-index", "--no-skip-worktree", "groups/ada/AGENTS.md")
		h.remove(t, "groups/ada")
		gitIn(t, h.top, "reset", "-q", "--hard")
		gitIn(t, h.top, "clean", "-qffdx")
	}
}

func TestTheRightToExecuteIsNoEditWhereGitDoesNotKeepIt(t *testing.T) {
	h := newHome(t)
	gitIn(t, h.top, "config", "core.fileMode", "false")
	if err := os.Chmod(filepath.Join(h.top, "groups/ada/AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := h.edits(t, "ada"); got != nil {
		t.Errorf("got %q", got)
	}
}

// beside is the host's repository.
func (h home) beside(t *testing.T) git.Dir {
	t.Helper()
	d, err := git.InitBare(t.Context(), disk.Ops{}, filepath.Join(t.TempDir(), "host.git"), h.ObjectFormat)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.Path, "objects/info/alternates"), []byte(h.CommonDir+"/objects\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// land brings a draft to the home, as everything else is.
func (h home) land(t *testing.T, host git.Dir, d group.Draft) error {
	t.Helper()
	l := &landing.Lander{Host: func(context.Context, git.Project, ...git.OID) (git.Dir, error) { return host, nil }, Wait: 1}
	made, err := l.Compute(t.Context(), landing.Order{
		Landing: "lnd-00000001", Change: "chg-test0001", Project: h.Project, Branch: "main", WorkTree: true,
		Base: d.Base, Edits: d.Edits, Source: d.Commit, Message: d.Message, Author: by.Author, Committer: by.Committer, Home: h.user,
	})
	if err != nil {
		return err
	}
	row := func(landing.Landing) error { return nil }
	done, err := l.Land(t.Context(), made, landing.Steps{Journal: row, Close: row, Again: row})
	if err == nil && done.State != landing.Landed {
		t.Fatalf("%s: %s", done.State, done.Reason)
	}
	return err
}

func TestAHandEditLandsAsItStandsAndNothingElseDoes(t *testing.T) {
	h := newHome(t)
	host := h.beside(t)
	ran := filepath.Join(h.user, "ran")
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction"} {
		h.write(t, ".git/hooks/"+hook, "#!/bin/sh\necho "+hook+" >> "+ran+"\n")
		if err := os.Chmod(filepath.Join(h.top, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	base := h.head(t)
	h.write(t, "groups/ada/AGENTS.md", "mine\n")
	h.write(t, "groups/ada/skills/cook/SKILL.md", "cook\n")
	h.remove(t, "groups/ada/runner/prompts/system.md")
	h.link(t, "AGENTS.md", "groups/ada/CLAUDE.md")
	h.write(t, "groups/cody/AGENTS.md", "not asked for\n")
	h.write(t, "policy.yaml", "paths_max: 7\n")
	gitIn(t, h.top, "-c", "core.hooksPath=/dev/null", "add", "policy.yaml", "groups/ada/skills") // staged as it stands is as good
	h.write(t, "groups/ada/.env", "KEY=1")

	d, err := group.DraftHandEdits(t.Context(), h.Project, h.user, host, base, "ada", by)
	if err != nil {
		t.Fatal(err)
	}
	if h.head(t) != base {
		t.Fatal("a draft moved the branch")
	}
	if err := h.land(t, host, d); err != nil {
		t.Fatal(err)
	}

	want := "A\tgroups/ada/CLAUDE.md\nM\tgroups/ada/AGENTS.md\nD\tgroups/ada/runner/prompts/system.md\nA\tgroups/ada/skills/cook/SKILL.md"
	if got := gitIn(t, h.top, "diff-tree", "-r", "--name-status", "--no-renames", string(base), "HEAD"); !sameLines(got, want) {
		t.Errorf("the commit holds\n%s", got)
	}
	if got := gitIn(t, h.top, "status", "--porcelain"); got != " M groups/cody/AGENTS.md\nM  policy.yaml" {
		t.Errorf("what was not asked for is\n%s", got)
	}
	if got := gitIn(t, h.top, "log", "-1", "--format=%s|%P"); got != "Edit the group ada by hand|"+string(base) {
		t.Errorf("the commit is %q", got)
	}
	if raw, err := os.ReadFile(ran); err == nil {
		t.Errorf("hooks ran: %s", raw)
	}
	if got := h.edits(t, "ada"); got != nil {
		t.Errorf("drift is left: %q", got)
	}
	if d, err := group.DraftHandEdits(t.Context(), h.Project, h.user, host, h.head(t), "ada", by); err != nil || len(d.Edits) != 0 || d.Commit != "" {
		t.Errorf("nothing is to be committed, and yet %+v, %v", d, err)
	}
}

func sameLines(a, b string) bool {
	lines := map[string]bool{}
	for line := range strings.Lines(a + "\n") {
		lines[line] = true
	}
	for line := range strings.Lines(b + "\n") {
		if !lines[line] {
			return false
		}
		delete(lines, line)
	}
	return len(lines) == 0
}

func TestAHandEditIsRefusedByNameWhereNothingCanLand(t *testing.T) {
	for what, test := range map[string]struct {
		make func(h home)
		want string
	}{
		"in a merge":     {func(h home) { h.write(t, ".git/MERGE_HEAD", string(h.head(t))+"\n") }, "merge"},
		"in a rebase":    {func(h home) { h.write(t, ".git/rebase-merge/head-name", "refs/heads/main\n") }, "rebase"},
		"a locked index": {func(h home) { h.write(t, ".git/index.lock", "") }, "index.lock"},
		"staged, and edited further": {func(h home) {
			gitIn(t, h.top, "add", "groups/ada")
			h.write(t, "groups/ada/AGENTS.md", "mine, and more\n")
		}, "staged changes"},
		"a filter": {func(h home) { h.write(t, ".gitattributes", "*.md filter=x\n") }, "AGENTS.md"},
		"many files": {func(h home) {
			for i := range 2_000 {
				h.write(t, fmt.Sprintf("groups/ada/x/%d", i), "")
			}
		}, "2001 files are changed; 2000 is the limit"},
		"many bytes": {func(h home) {
			for _, name := range []string{"x", "y", "z"} {
				h.write(t, "groups/ada/"+name, "")
				if err := os.Truncate(filepath.Join(h.top, "groups/ada", name), 15<<20); err != nil {
					t.Fatal(err)
				}
			}
		}, "more than 33554432 bytes"},
		"an odd file": {func(h home) { h.write(t, "groups/ada/x", strings.Repeat("x", 16<<20+1)) }, "groups/ada/x"},
	} {
		h := newHome(t)
		host := h.beside(t)
		h.write(t, "groups/ada/AGENTS.md", "mine\n")
		test.make(h)
		base := h.head(t)
		d, err := group.DraftHandEdits(t.Context(), h.Project, h.user, host, base, "ada", by)
		if err == nil {
			err = h.land(t, host, d)
		}
		if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), test.want) || problem.Of(err).Next == "" {
			t.Errorf("%s: %v", what, err)
		}
		if h.head(t) != base {
			t.Errorf("%s: the branch moved", what)
		}
	}
}

func TestAGroupMadeByHandIsCommittedWhole(t *testing.T) {
	h := newHome(t)
	host := h.beside(t)
	h.write(t, "groups/eve/runner/runner.yaml", "agent: echo\n")
	d, err := group.DraftHandEdits(t.Context(), h.Project, h.user, host, h.head(t), "eve", by)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.land(t, host, d); err != nil {
		t.Fatal(err)
	}
	if g := h.read(t, "eve"); g.Runner.Agent != "echo" || g.Instructions != nil {
		t.Errorf("got %+v", g)
	}
}

func mkfifo(t *testing.T, at string) {
	t.Helper()
	if err := unix.Mkfifo(at, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatIsWrittenWhileItIsCommittedIsAConflict(t *testing.T) {
	for what, write := range map[string]func(h home){
		"another text": func(h home) { h.write(t, "groups/ada/AGENTS.md", "more than before\n") },
		"as committed": func(h home) { gitIn(t, h.top, "checkout", "-q", "--", "groups/ada/AGENTS.md") },
		"large":        func(h home) { h.write(t, "groups/ada/AGENTS.md", strings.Repeat("x", 16<<20+1)) },
	} {
		h := newHome(t)
		host := h.beside(t)
		h.write(t, "groups/ada/AGENTS.md", "mine\n")
		h.write(t, "groups/ada/x", "")
		host.Ops.Around = func(_ string, do func() error) error { write(h); return do() }
		d, err := group.DraftHandEdits(t.Context(), h.Project, h.user, host, h.head(t), "ada", by)
		if problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "group") {
			t.Errorf("%s: %+v, %v", what, d.Edits, err)
		}
	}
}
