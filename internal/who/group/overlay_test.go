package group_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/who/group"
)

func TestAGroupsChangeBeginsOnWhatTheGroupRuns(t *testing.T) {
	h := newHome(t)
	h.write(t, "groups/ada/runner/prompts/system.md", "mine\n")
	h.write(t, "groups/ada/runner/hooks/on-start", "#!/bin/sh\n")
	h.write(t, "groups/ada/skills/cook/SKILL.md", "cook\n")
	h.write(t, "template/runner/prompts/new.md", "only for new groups\n")
	h.write(t, "template/skills/swim/SKILL.md", "only for new groups\n")
	gitIn(t, h.top, "rm", "-rqf", "groups/ada/skills/keep-notes")
	head := h.commit(t)

	made, err := group.Overlay(t.Context(), h.Dir, head, "ada", by)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runner", "skills"} {
		if there, mine := gitIn(t, h.top, "rev-parse", string(made)+":template/"+name), gitIn(t, h.top, "rev-parse", string(head)+":groups/ada/"+name); there != mine {
			t.Errorf("template/%s is %s, not the group's %s", name, there, mine)
		}
	}
	changed := strings.Fields(gitIn(t, h.top, "diff-tree", "-r", "--name-only", string(head), string(made)))
	want := []string{".env", "template/runner/hooks/on-start", "template/runner/prompts/new.md", "template/runner/prompts/system.md",
		"template/skills/cook/SKILL.md", "template/skills/keep-notes/SKILL.md", "template/skills/swim/SKILL.md"}
	if !reflect.DeepEqual(changed, want) {
		t.Errorf("it differs from the home in %q", changed)
	}
	if got := gitIn(t, h.top, "log", "-1", "--format=%P|%an", by.Ref); got != string(head)+"|P" || h.head(t) != head {
		t.Errorf("it stands upon %q, and the branch at %s", got, h.head(t))
	}
	if again, err := group.Overlay(t.Context(), h.Dir, head, "ada", by); again != made || err != nil {
		t.Errorf("a second time it is %s, not %s; %v", again, made, err)
	}
}

func TestAGroupWithoutSkillsIsShownNoneOfTheTemplates(t *testing.T) {
	h := newHome(t)
	gitIn(t, h.top, "rm", "-rq", "groups/ada/skills")
	made, err := group.Overlay(t.Context(), h.Dir, h.commit(t), "ada", by)
	if err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, h.top, "ls-tree", "--name-only", string(made), "template/"); got != "template/AGENTS.md\ntemplate/runner" {
		t.Errorf("the template has %q", got)
	}
}

// TestADevAgentSeesADummyOfTheHomesEnvAndNoState is SM-030, also where somebody has committed them by force. Nothing of that lands.
func TestADevAgentSeesADummyOfTheHomesEnvAndNoState(t *testing.T) {
	h := newHome(t)
	h.write(t, ".env", "KEY=Tulip\n")
	h.write(t, ".state/sallyport.db", "rows\n")
	gitIn(t, h.top, "add", "-f", ".env", ".state")
	head := h.commit(t)
	made, err := group.Overlay(t.Context(), h.Dir, head, "ada", by)
	if err != nil {
		t.Fatal(err)
	}
	if text := gitIn(t, h.top, "show", string(made)+":.env"); !strings.HasPrefix(text, "# This is a dummy") {
		t.Errorf("it is shown %q", text)
	}
	if got := gitIn(t, h.top, "ls-tree", "--name-only", string(made), ".state"); got != "" {
		t.Errorf("it is shown %q", got)
	}

	gitIn(t, h.top, "checkout", "-q", "--detach", string(made))
	h.write(t, "template/runner/prompts/system.md", "mine\n")
	m, err := group.Map(t.Context(), h.Dir, "ada", made, h.commit(t), head, by)
	if err != nil || len(m.Edits) != 1 || gitIn(t, h.top, "show", string(m.Commit)+":.env") != "KEY=Tulip" {
		t.Errorf("what is offered is %+v: %v", m.Edits, err)
	}
}

func TestAGroupThatCannotRunIsNoBaseOfAChange(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(h home)
		want  string
	}{
		"no runner": {func(h home) { gitIn(t, h.top, "rm", "-rq", "groups/ada/runner") }, "groups/ada/runner: it is missing"},
		"a link as runner": {func(h home) {
			gitIn(t, h.top, "rm", "-rq", "groups/ada/runner")
			h.link(t, "/etc", "groups/ada/runner")
		}, "groups/ada/runner: it must be a folder"},
		"a file as skills": {func(h home) {
			_ = os.RemoveAll(filepath.Join(h.top, "groups/ada/skills"))
			h.write(t, "groups/ada/skills", "x")
		}, "groups/ada/skills: it must be a folder"},
	} {
		h := newHome(t)
		test.spoil(h)
		_, err := group.Overlay(t.Context(), h.Dir, h.commit(t), "ada", by)
		if problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), test.want) || problem.Of(err).Next == "" {
			t.Errorf("%s: %v; must say %q", name, err, test.want)
		}
	}
	h := newHome(t)
	if _, err := group.Overlay(t.Context(), h.Dir, h.head(t), "bob", by); problem.KindOf(err) != problem.NotFound {
		t.Errorf("no group: %v", err)
	}
}
