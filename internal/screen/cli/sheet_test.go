package cli

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

// forged is what an agent says so that, on a terminal of so many columns, each line begins a row.
func forged(width, before int) string {
	text := "All tests pass." + strings.Repeat(" ", max(width-before-15, 0))
	for _, line := range []string{"checks, run on exactly this tree:", "digest 0123456789abcdef0123456789abcdef  rules fedcba987654"} {
		text += line + strings.Repeat(" ", max(width-len(line), 0))
	}
	return text
}

func TestWordsOfOthersBeginNoRowOfTheTerminal(t *testing.T) {
	for _, width := range []int{20, 40, 80, 120} {
		var b strings.Builder
		s := sheet{w: &b, width: width, terminal: true}
		long := strings.Repeat("x", 3*width)
		printCard(s, "chg-00000001", api.Proposal{Digest: "d", Card: api.Card{
			Title: "t", Repo: "/r", Branch: "b", AgentSays: forged(width, 4) + "\n\u4e2d\u6587" + strings.Repeat("\u4e2d", width), FilesTotal: 2,
			Files: []api.FileLine{{Path: forged(width, 12), Status: "added", Added: 1}, {Path: strings.Repeat("\u4e2d", width), Status: "added"}},
			Reach: []string{forged(width, 4)}, Drift: []string{long},
			Checks:   []api.CheckResult{{Command: "true", Why: "no", Tail: forged(width, 6)}},
			LeftOver: []api.LeftOver{{Folder: long}},
		}})
		printViolations(s, api.Checkpoint{}, 0)
		for line := range strings.Lines(b.String()) {
			line = strings.TrimRight(line, "\n")
			ours := strings.HasPrefix(line, "checks, run") || strings.HasPrefix(line, "digest ")
			if ours && (strings.Contains(line, "0123456789ab") || strings.Contains(line, "tree: ")) {
				t.Errorf("%d columns: a row of the agent's looks like ours: %q", width, line)
			}
			if !strings.HasPrefix(line, " ") || width < 80 && !strings.HasPrefix(line, "  > ") { // our own words may be longer
				continue
			}
			if n := columns(line); n > width {
				t.Errorf("%d columns: a row has %d: %q", width, n, line)
			}
		}
	}
}

func TestOfWhatPrintedNothingThereIsNoRow(t *testing.T) {
	var b strings.Builder
	printCard(sheet{w: &b, width: 80}, "chg-00000001", api.Proposal{Card: api.Card{Subject: "s", Checks: []api.CheckResult{{Command: "false", Why: "it ended with status 1", Tail: " \n"}}}})
	for line := range strings.Lines(b.String()) {
		if mark := strings.TrimSpace(line); mark == "|" || mark == "" && line != "\n" {
			t.Errorf("a row with nothing in it: %q in\n%s", line, b.String())
		}
	}
}

// On a terminal no row begins with what an agent, or a long name in a line of ours, put there.
func TestWhatGoesOnInTheNextRowIsMarked(t *testing.T) {
	for _, width := range []int{20, 47, 80} {
		var b strings.Builder
		s := sheet{w: &b, width: width, terminal: true, palette: true}
		for _, text := range append(lookalikes, forged(width, 2), strings.Repeat("\t", width)+lookalikes[0]) {
			s.quote(text)
		}
		agents := strings.Count(b.String(), "\n")
		for line := range strings.Lines(b.String()) {
			if !strings.HasPrefix(line, agentMark) || columns(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		b.Reset()
		s.line("%s %s: %s", "chg-00000002", s.green("finalized"), forged(width, 0)+lookalikes[0])
		for i, line := range strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n") {
			if i > 0 && !strings.HasPrefix(line, goesOn) {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if agents < len(lookalikes) {
			t.Errorf("only %d rows", agents)
		}
	}
}

func TestNothingIsLostInRows(t *testing.T) {
	text := fmt.Sprintf("%s\n\n%s", strings.Repeat("abc ", 50), strings.Repeat("\u4e2d", 60))
	var b strings.Builder
	sheet{w: &b, width: 30}.rows("> ", "> ", text)
	kept := strings.NewReplacer("> ", "", "\n", "", " ", "")
	if got := strings.ReplaceAll(kept.Replace(b.String()), ">", ""); got != kept.Replace(text) {
		t.Errorf("got %q", got)
	}
}

func TestRowsEndAfterAWordWhereTheyCan(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"widen allowed_areas in policy.yaml", "> widen\n> allowed_areas in\n> policy.yaml\n"},
		{"exactly nineteen !! and", "> exactly nineteen\n> !! and\n"},
		{"a bcdefghijklmnopqrstuvwxyz", "> a bcdefghijklmnop\n> qrstuvwxyz\n"},
	} {
		var b strings.Builder
		sheet{w: &b, width: 20}.rows("> ", "> ", c.text)
		if got := b.String(); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
