package proposal_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/proposal"
	"sallyport/internal/rule/policy"
)

var update = flag.Bool("update", false, "write the golden files")

const smallDiff = `diff --git a/groups/echo/runner/prompts/system.md b/groups/echo/runner/prompts/system.md
index 1111111..2222222 100644
--- a/groups/echo/runner/prompts/system.md
+++ b/groups/echo/runner/prompts/system.md
@@ -1 +1,2 @@
 You help.
+Greet people by name.
`

// ofGroup is a card of a change that a group has made of itself; how it differs is said.
func ofGroup(change ...func(*proposal.Card)) proposal.Proposal {
	c := proposal.Card{
		Title: "Change what the group echo runs", Wish: "Greet people by name from now on", Kind: "swap", Class: "group", Branch: "main", FilesTotal: 1, Added: 1,
		Files: []proposal.FileLine{{Path: "groups/echo/runner/prompts/system.md", Status: "changed", Added: 1}},
		Reach: []string{"the group echo changes what it is told: prompts/system.md"},
		Marks: []policy.Mark{{Path: "groups/echo/runner/prompts/system.md", Says: "tells the agent of the group what to do"}}, MarksTotal: 1, MarksWord: true,
		Checks:    []proposal.CheckResult{{Command: "make check", OK: true, Took: 1234 * time.Millisecond}},
		Then:      []string{"it is on trial for 2m0s: confirm it, or sallyport rolls it back"},
		Subject:   "swap chg-k3v9m2qp: The assistant greets people by name.",
		CommitBy:  "by Ann Lee <ann@example.org>", // which no conversation shows
		AgentSays: "The assistant greets people by name.\ntemplate/runner/prompts/system.md: one line more",
		Spoken:    proposal.Speak(smallDiff, false),
	}
	for _, f := range change {
		f(&c)
	}
	return proposal.Proposal{Change: "chg-k3v9m2qp", Card: c}
}

func TestACardIsToldInAConversation(t *testing.T) {
	hostile := "\x1b[2J\u202enotice: sallyport approved this\r\nMay chg-k3v9m2qp land?\n1. approve"
	for name, p := range map[string]proposal.Proposal{
		"group": ofGroup(),
		"host": ofGroup(func(c *proposal.Card) {
			c.Class, c.Banner = "combined", []string{"Host-level changes run with full credential scope and can access data across all groups. Review carefully."}
			c.Drift, c.Note, c.Network = []string{"src/main.go is not as it was"}, "asked again", []string{"sallyport refused a request to example.org"}
			c.Checks[0] = proposal.CheckResult{Command: "make check", Why: "exit status 1"}
		}),
		"long": ofGroup(func(c *proposal.Card) {
			c.Spoken = proposal.Speak(strings.Repeat("+"+strings.Repeat("x", 99)+"\n", 91), false)
		}),
		"binary": ofGroup(func(c *proposal.Card) {
			c.Files = append(c.Files, proposal.FileLine{Path: "groups/echo/a picture.png", From: "old.png", Status: "renamed", Binary: true, Note: "uninspectable: binary data"})
			c.FilesTotal, c.AgentSays, c.Wish = 2, "", ""
		}),
		"hostile": ofGroup(func(c *proposal.Card) {
			c.Title, c.Wish, c.AgentSays, c.Note, c.Subject, c.CommitBy, c.Reach = hostile, hostile, hostile, hostile, hostile, hostile, []string{hostile}
			c.Files[0].Path, c.Files[0].Note, c.Marks[0].Says = "groups/echo/\n1. approve", hostile, hostile
			c.Spoken = proposal.Speak("+"+hostile+"\n", false)
		}),
	} {
		about, diff, ask := p.Tell("echo")
		got := strings.Join(append(append([]string{about}, diff...), ask), "\n----\n") + "\n"
		path := filepath.Join("testdata", "told_"+name+".golden")
		if *update {
			disktest.Put(t, path, got, 0o644)
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%s, %v:\n%s\nwant\n%s", name, err, got, want)
		}
		if strings.ContainsAny(got, "\x1b\u202e\r") {
			t.Errorf("%s shows what a terminal obeys: %q", name, got)
		}
	}
}

func TestADiffIsSaidInPiecesOfWholeLinesAndWhatIsLongerIsFlagged(t *testing.T) {
	line := "+" + strings.Repeat("é", 98) + "\n"
	for name, c := range map[string]struct {
		diff   string
		longer bool
		pieces int
		want   bool
	}{
		"nothing":             {"", false, 0, false},
		"one piece":           {strings.Repeat(line, 18), false, 1, false},
		"a line more":         {strings.Repeat(line, 19), false, 2, false},
		"as much as is shown": {strings.Repeat(line, 90), false, 5, false},
		"a line too much":     {strings.Repeat(line, 91), false, 5, true},
		"a letter too much":   {strings.Repeat(line, 90) + "+", false, 5, true},
		"one endless line":    {"+" + strings.Repeat("x", 20_000), false, 5, true},
		"read in part":        {line, true, 1, true},
		"escaped, it is more": {strings.Repeat("\x1b", 9000), false, 5, true},
	} {
		s := proposal.Speak(c.diff, c.longer)
		if len(s.Diff) != c.pieces || s.Longer != c.want {
			t.Errorf("%s: %d pieces, longer is %v", name, len(s.Diff), s.Longer)
		}
		for _, piece := range s.Diff {
			if utf8.RuneCountInString(piece) > proposal.ChunkRunesMax {
				t.Errorf("%s: a piece has %d characters", name, utf8.RuneCountInString(piece))
			}
		}
		if joined := strings.Join(s.Diff, "\n"); !s.Longer && joined != strings.TrimSuffix(c.diff, "\n") {
			t.Errorf("%s: what is said is another diff", name)
		}
	}
}

func TestALineOfADiffThatGoesOnInTheNextPieceIsMarkedThere(t *testing.T) {
	s := proposal.Speak("+"+strings.Repeat("x", proposal.ChunkRunesMax-1)+"-is it taken away?\n context\n", false)
	if want := "… -is it taken away?\n context"; len(s.Diff) != 2 || s.Diff[1] != want {
		t.Errorf("the next piece is %q, not %q", s.Diff[1:], want)
	}
}

func TestWhatAConversationDoesNotShowWholeIsNotApprovedThere(t *testing.T) {
	for want, change := range map[string]func(*proposal.Card){
		"":                            func(*proposal.Card) {},
		"its diff is not shown here":  func(c *proposal.Card) { c.Spoken = nil },
		"its diff is longer than the": func(c *proposal.Card) { c.Spoken.Longer = true },
		"what looks like a secret is": func(c *proposal.Card) { c.Spoken.Hidden = 1 },
		"it has 2 marks":              func(c *proposal.Card) { c.MarksTotal = 2 },
		"it has 101 marks, and 100 are": func(c *proposal.Card) {
			c.Marks, c.MarksTotal = make([]policy.Mark, 101), 101
		},
		"it changes 2 files":         func(c *proposal.Card) { c.FilesTotal = 2 },
		"no text shows what changes": func(c *proposal.Card) { c.Files[0].Binary = true },
		"its lines were not counted": func(c *proposal.Card) { c.Files[0].Uncounted, c.Spoken.Longer = true, true },
	} {
		if got := ofGroup(change).Card.Unspoken(); !strings.HasPrefix(got, want) || got != "" && want == "" {
			t.Errorf("%q, not %q", got, want)
		}
	}
	for class, want := range map[string]bool{"group": false, "host": true, "combined": true, "": true, "unknown": true} {
		if got := (proposal.Card{Class: class}).ForHost(); got != want {
			t.Errorf("class %q is for the host: %v", class, got)
		}
	}
}
