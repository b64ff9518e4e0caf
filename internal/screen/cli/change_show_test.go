package cli

import (
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

// While a change waits for a yes its story has every line of its card but those of the request, which stand elsewhere in it.
func TestTheStoryOfAChangeThatWaitsSaysWhatItsCardSays(t *testing.T) {
	card := api.Card{
		Title: "Change the host", Wish: "a wish", Kind: "swap", Class: "combined", Note: "a note", Banner: []string{"a banner"}, FilesTotal: 1,
		Files: []api.FileLine{{Path: "policy.yaml", Status: "changed", Added: 1}}, Reach: []string{"a gain"}, Drift: []string{"a drift"},
		Marks: []api.Mark{{Path: "x", Says: "a mark"}}, Checks: []api.CheckResult{{Command: "a check", OK: true}}, LeftOver: []api.LeftOver{{Folder: "a folder"}},
		Moved: &api.Moved{Commits: 1, Subjects: []string{"a commit"}}, Then: []string{"what comes then"}, Setup: []string{"a setup"}, Subject: "a subject", CommitBy: "an author",
		AgentSays: "words of the agent", Host: &api.Rehearsed{Runs: "it runs by a release", Tried: []string{"a step"}, Not: []string{"no platform"}},
	}
	d := api.Detail{Change: api.Change{ID: "chg-00000001", State: api.AwaitingApproval, Text: card.Wish, Kind: "swap", Group: "echo", Dev: "dev-1"}, Proposal: &api.Proposal{Card: card}}
	story := func() string {
		var b strings.Builder
		printStory(&app{}, sheet{w: &b, width: 100}, d, nil)
		return b.String()
	}
	var shown strings.Builder
	printCard(sheet{w: &shown, width: 100}, d.Change.ID, *d.Proposal)
	_, lines, _ := strings.Cut(shown.String(), "\n  note:")
	lines, _, _ = strings.Cut("  note:"+lines, "\n\ndigest ")
	said := story()
	for line := range strings.SplitSeq(lines, "\n") {
		if !strings.HasPrefix(line, "the group's agent asks") && !strings.Contains(said, line+"\n") {
			t.Errorf("the story has no %q:\n%s", line, said)
		}
	}

	for class, want := range map[string]string{
		"host": "it changes the host; dev-1 makes it\n", "combined": "it changes the host, and what the group echo runs; dev-1 makes it\n", "group": "it changes what the group echo runs; dev-1 makes it\n",
	} {
		if d.Proposal.Card.Class = class; !strings.Contains(story(), want) {
			t.Errorf("of class %s it has no %q", class, want)
		}
	}
	if d.Proposal = nil; !strings.Contains(story(), "dev-1 makes it for the group echo\n") {
		t.Error("before anything is proposed it says what the change reaches")
	}
}
