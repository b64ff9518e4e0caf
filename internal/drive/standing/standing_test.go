package standing_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/standing"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/who/group"
)

// home makes the repository of a bubble that of the home itself: a file of an earlier time, and, if whole is set, all that a home has.
func home(t *testing.T, h *drivetest.Home, whole bool) *control.Controller {
	t.Helper()
	h.Parts.Home = h.Repo
	if whole {
		files, err := group.NewHome([]group.Beginning{{Folder: group.First}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			write(t, h, f.Name, f.Text)
		}
		h.Git("add", "-A")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "home")
	}
	c, _ := h.Daemon()
	return c
}

func write(t *testing.T, h *drivetest.Home, name, text string) {
	t.Helper()
	at := filepath.Join(h.Repo, name)
	disktest.Put(t, at, text, 0o644)
}

// landed waits until what was asked for has landed.
func landed(t *testing.T, h *drivetest.Home, c *control.Controller, row change.Row, err error) {
	t.Helper()
	if err != nil || row.ID == "" {
		t.Fatalf("it asks for %q: %v", row.ID, err)
	}
	h.Is(c, row.ID, change.Finalized)
	if out := h.Git("status", "--porcelain", "--untracked-files=all"); out != "" {
		t.Errorf("git says afterwards: %s", out)
	}
}

func TestANewGroupLandsAsACopyOfTheTemplate(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		row, err := c.Groups.Create(t.Context(), standing.Asked{By: h.By(), Name: "cody", Agent: "codex"})
		landed(t, h, c, row, err)
		if subject := h.Git("log", "-1", "--format=%s"); subject != "Make the group cody" {
			t.Errorf("the commit says %q", subject)
		}

		write(t, h, ".state/groups/cody/agent/memory/index.md", "ann likes tea\n")
		s, err := c.Groups.Show(t.Context(), "cody", "")
		if err != nil || s.Group.Runner.Agent != "codex" || s.Broken != nil || len(s.Edits) > 0 || len(s.Drift) != 1 || s.Drift[0].Path != "runner/runner.yaml" || s.Memory == 0 {
			t.Errorf("the group is %+v: %v", s, err)
		}
		write(t, h, ".state/groups/cody/agent/memory/"+strings.Repeat("d/", 200)+"deep", strings.Repeat("x", 8<<20))
		if deep, err := c.Groups.Show(t.Context(), "cody", ""); err != nil || deep.Memory > 4<<20 { // folders in each other without end are not held open
			t.Errorf("its memory has %d bytes, %v", deep.Memory, err)
		}
		all, odd, err := c.Groups.List(t.Context(), "")
		if err != nil || len(odd) > 0 || len(all) != 2 || all[0].Folder != "cody" || all[1].Folder != group.First || len(all[1].Drift) > 0 {
			t.Errorf("the groups are %+v and %q: %v", all, odd, err)
		}
		h.Is(c, h.Undo(c, row.ID, request.Yes), change.Finalized)
		if _, err := c.Groups.Show(t.Context(), "cody", ""); problem.KindOf(err) != problem.NotFound {
			t.Errorf("rolled back, it is still there: %v", err)
		}
	})
}

// TestAGroupThatSomebodyWaitsForIsThereOrItIsSaidWhyNot holds what a conversation stands on that has a group made (CH-067).
func TestAGroupThatSomebodyWaitsForIsThereOrItIsSaidWhyNot(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		by := audit.Actor{Kind: "person", Name: "ann", UID: -1, Person: h.Owner.ID, Identity: "chat:U0"}
		if err := c.MakeGroup(gittest.Context(t), "cody", by); err != nil {
			t.Fatal(err)
		}
		if out := h.Git("ls-tree", "--name-only", "HEAD:groups"); !strings.Contains(out, "cody") {
			t.Errorf("the home has the groups %q", out)
		}
		if err := c.MakeGroup(gittest.Context(t), "cody", h.By()); problem.KindOf(err) != problem.Conflict {
			t.Errorf("made again: %v", err)
		}
		if err := c.MakeGroup(gittest.Context(t), "dora", audit.Actor{Kind: "person", Name: "bob", UID: 4711}); problem.KindOf(err) != problem.Denied {
			t.Errorf("made by another: %v", err)
		}
	})
}

func TestAHandEditLandsAndNothingElseDoes(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		asked := standing.Asked{By: h.By(), Name: "echo"}
		if row, err := c.Groups.Commit(t.Context(), asked); err != nil || row.ID != "" {
			t.Fatalf("without an edit %q: %v", row.ID, err)
		}
		write(t, h, "groups/echo/AGENTS.md", "# Ada\n")
		write(t, h, "groups/echo/runner/prompts/more.md", "More.\n")
		s, err := c.Groups.Show(t.Context(), "echo", "")
		if err != nil || len(s.Edits) != 2 || s.Edits[0].Kind != group.Changed || s.Edits[1].Kind != group.Added {
			t.Errorf("before it is committed the edits are %+v: %v", s.Edits, err)
		}
		before := s.Tree

		write(t, h, "page.txt", "mine\n") // of the same home, and no group's
		asked.Message = "Call it Ada"
		row, err := c.Groups.Commit(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		h.Is(c, row.ID, change.Finalized)
		if out := h.Git("status", "--porcelain"); out != "M page.txt" {
			t.Errorf("git says afterwards: %q", out)
		}
		if out := h.Git("log", "-1", "--format=%s%n%b"); !strings.HasPrefix(out, "Call it Ada\n") || strings.Contains(out, "Co-authored") {
			t.Errorf("the commit says %q", out)
		}
		s, err = c.Groups.Show(t.Context(), "echo", "")
		if err != nil || len(s.Edits) > 0 || s.Tree == before || s.Group.Instructions.SizeBytes != 6 || len(s.Group.Prompts) != 2 || len(s.Drift) != 2 {
			t.Errorf("the group is %+v: %v", s, err)
		}
	})
}

// What a rule forbids is refused of a person's own hand too, and their files stay as they are.
func TestTheRulesJudgeAHandEdit(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		write(t, h, "groups/echo/skills/id_rsa", "x\n")
		row, err := c.Groups.Commit(t.Context(), standing.Asked{By: h.By(), Name: "echo"})
		if err != nil {
			t.Fatal(err)
		}
		d := h.Is(c, row.ID, change.Failed)
		if !strings.Contains(d.Change.Reason, `"groups/echo/skills/id_rsa" breaks the rule`) {
			t.Errorf("it says %q", d.Change.Reason)
		}
		if d.Change.Next != "sallyport change diff "+string(row.ID) {
			t.Errorf("it leads to %q", d.Change.Next)
		}
		if _, err := c.Redo(gittest.Context(t), row.ID, h.By(), nil); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "no agent made it") {
			t.Errorf("redone: %v", err)
		}
		if out := h.Git("status", "--porcelain"); out != "?? groups/echo/skills/id_rsa" {
			t.Errorf("git says afterwards: %q", out)
		}
	})
}

// What could not land waits for its owner. Asked for again it lands, and the first does not wait any more.
func TestACommitThatWaitsIsOvertakenByTheNext(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Checks: []string{"true"}}}
		c := home(t, h, true)
		h.Cage.Play = func(int, string, <-chan struct{}) int { // somebody writes meanwhile
			write(t, h, "groups/echo/AGENTS.md", "# Bea\n")
			return 0
		}
		write(t, h, "groups/echo/AGENTS.md", "# Ada\n")
		asked := standing.Asked{By: h.By(), Name: "echo"}
		first, err := c.Groups.Commit(t.Context(), asked)
		if err != nil {
			t.Fatal(err)
		}
		h.Is(c, first.ID, change.AwaitingApproval)
		second, err := c.Groups.Commit(t.Context(), asked)
		landed(t, h, c, second, err)
		if d := h.Is(c, first.ID, change.Cancelled); d.Change.Reason != "the group was committed anew" {
			t.Errorf("the first says %q", d.Change.Reason)
		}
	})
}

func TestAGroupThatCouldNotRunIsNotCommitted(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		write(t, h, "groups/echo/runner/runner.yaml", "agent: echo\nsudo: yes\n")
		asked := standing.Asked{By: h.By(), Name: "echo"}
		row, err := c.Groups.Commit(t.Context(), asked)
		if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), "groups/echo/runner/runner.yaml:2:1: sudo") {
			t.Errorf("it is %q: %v", row.ID, err)
		}
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "by their own git")
		s, err := c.Groups.Show(t.Context(), "echo", "")
		if err != nil || s.Broken == nil || !strings.Contains(s.Broken.Error(), "runner.yaml:2:1") || s.Tree == "" {
			t.Errorf("committed all the same, the group is %+v: %v", s, err)
		}
		if err := os.RemoveAll(filepath.Join(h.Repo, "groups/echo")); err != nil { // it may go whole
			t.Fatal(err)
		}
		row, err = c.Groups.Commit(t.Context(), asked)
		landed(t, h, c, row, err)
		if _, err := c.Groups.Commit(t.Context(), asked); problem.KindOf(err) != problem.NotFound {
			t.Errorf("of a group that is not there: %v", err)
		}
	})
}

func TestAHomeFromBeforeThereWereGroupsIsCompletedOnce(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, false)
		h.Commits(".gitignore", "/mine\n.state/", "mine")
		asked := standing.Asked{By: h.By(), Name: "cody"}
		if _, err := c.Groups.Create(t.Context(), asked); problem.Of(err).Next != "sallyport init "+h.Repo {
			t.Errorf("a group without a template: %v", err)
		}
		row, err := c.Groups.Complete(t.Context(), asked)
		landed(t, h, c, row, err)
		if got := h.Git("show", "main:.gitignore"); got != "/mine\n.state/\n.env\n.env.*" {
			t.Errorf("git ignores %q", got)
		}
		h.Git("mv", "groups/echo", "groups/ada")
		h.Git("rm", "-rqf", "groups/ada/AGENTS.md", "template/skills")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "mine")
		if row, err := c.Groups.Complete(t.Context(), asked); err != nil || row.ID != "" {
			t.Errorf("what a person has taken away comes back: %q, %v", row.ID, err)
		}
		all, _, err := c.Groups.List(t.Context(), "")
		if err != nil || len(all) != 1 || all[0].Folder != "ada" || all[0].Broken != nil {
			t.Errorf("the groups are %+v: %v", all, err)
		}
	})
}

func TestOnlyTheOwnerMakesOrCommitsAGroup(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		for _, by := range []audit.Actor{{Kind: "agent", Name: "echo", UID: h.Owner.UID}, {Kind: "person", Name: "bob", UID: h.Owner.UID + 1}, audit.Host} {
			asked := standing.Asked{By: by, Name: "cody"}
			for name, ask := range map[string]func() (change.Row, error){
				"create":   func() (change.Row, error) { return c.Groups.Create(t.Context(), asked) },
				"commit":   func() (change.Row, error) { return c.Groups.Commit(t.Context(), asked) },
				"complete": func() (change.Row, error) { return c.Groups.Complete(t.Context(), asked) },
			} {
				if row, err := ask(); problem.KindOf(err) != problem.Denied || row.ID != "" {
					t.Errorf("%s by %s: %q, %v", name, by.Name, row.ID, err)
				}
			}
		}
		for name, next := range map[string]string{"My Helper": "sallyport group create my-helper", "all": "sallyport group create all-2", "echo": "sallyport group show echo"} {
			if _, err := c.Groups.Create(t.Context(), standing.Asked{By: h.By(), Name: name}); problem.Of(err).Next != next {
				t.Errorf("%q leads to %q: %v", name, problem.Of(err).Next, err)
			}
		}
		if _, err := c.Groups.Create(t.Context(), standing.Asked{By: h.By(), Name: "cody", Agent: "sh -c id"}); problem.KindOf(err) != problem.Usage {
			t.Errorf("a command as an agent: %v", err)
		}
	})
}

// TestAFolderThatAGroupNewlySeesIsSpokenAboutBeforeItCounts holds CH-026 of a person's own hand: read-only needs no word, and nothing that
// an agent could write in counts before somebody has said so.
func TestAFolderThatAGroupNewlySeesIsSpokenAboutBeforeItCounts(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c := home(t, h, true)
		commit := func(s standing.Shown) (change.Row, error) {
			return c.Groups.Commit(t.Context(), standing.Asked{By: h.By(), Name: "echo", Shown: s})
		}
		create := func(s standing.Shown) (change.Row, error) {
			return c.Groups.Create(t.Context(), standing.Asked{By: h.By(), Name: "cody", Agent: "codex", Shown: s})
		}
		const own, all = "groups/echo/runner/runner.yaml", "template/runner/runner.yaml"
		write(t, h, own, "agent: echo\nmounts: [{path: /srv/a}]\n")
		row, err := commit(standing.Shown{})
		landed(t, h, c, row, err)

		write(t, h, own, "agent: echo\nmounts: [{path: /srv/a, readonly: false}, {path: /srv/b}]\n")
		if row, err := commit(standing.Shown{}); problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport group commit echo --yes" || !strings.Contains(err.Error(), "what is in /srv/a,") {
			t.Errorf("nobody was asked: %q, %v", row.ID, err)
		}
		says := standing.Shown{Ask: true, Said: map[string]string{"/srv/a": "read-only", "/srv/b": "read-only"}}
		unsaid, ok := errors.AsType[*standing.UnsaidError](second(commit(says)))
		if !ok || len(unsaid.Folders) != 1 || unsaid.Folders[0].Path != "/srv/a" || !unsaid.Folders[0].Wish.Write {
			t.Fatalf("otherwise than the file has it: %+v", unsaid)
		}
		if unsaid, ok := errors.AsType[*standing.UnsaidError](second(commit(standing.Shown{Ask: true}))); !ok || len(unsaid.Folders) != 2 {
			t.Fatalf("nothing is said: %+v", unsaid)
		}
		says.Said["/srv/a"] = "read-write"
		row, err = commit(says)
		landed(t, h, c, row, err)

		write(t, h, all, "agent: echo\nmounts: [{path: /srv/c, readonly: false}]\n")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qam", "mine")
		if row, err := create(standing.Shown{}); problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport group create cody --agent codex --yes" {
			t.Errorf("nobody was asked: %q, %v", row.ID, err)
		}
		if err := c.MakeGroup(gittest.Context(t), "dora", h.By()); problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport group create dora --yes" {
			t.Errorf("from a conversation: %v", err)
		}
		row, err = create(standing.Shown{Yes: true})
		landed(t, h, c, row, err)

		h.Git("rm", "-rqf", "groups")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "no groups")
		complete := func(s standing.Shown) (change.Row, error) {
			return c.Groups.Complete(t.Context(), standing.Asked{By: h.By(), Shown: s})
		}
		if row, err := complete(standing.Shown{}); problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport init "+h.Repo+" --yes" {
			t.Errorf("init asked nobody: %q, %v", row.ID, err)
		}
		if unsaid, ok := errors.AsType[*standing.UnsaidError](second(complete(standing.Shown{Ask: true}))); !ok || len(unsaid.Folders) != 1 {
			t.Errorf("init says nothing: %+v", unsaid)
		}
		row, err = complete(standing.Shown{Yes: true})
		landed(t, h, c, row, err)
	})
}

func second(_ change.Row, err error) error { return err }
