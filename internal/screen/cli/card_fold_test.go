package cli

import (
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestManyFilesAreFoldedByFolderAndNoneIsLost(t *testing.T) {
	var files []api.FileLine
	for i := range 20 {
		files = append(files, api.FileLine{Path: fmt.Sprintf("src/gen/f%02d.go", i), Status: "added", Added: 2})
	}
	files = append(files,
		api.FileLine{Path: "src/gen/run.sh", Status: "added", Added: 1, Note: "new executable"},
		api.FileLine{Path: "README.md", Status: "changed", Added: 1, Removed: 3},
		api.FileLine{Path: "docs/a.md", Status: "renamed", From: "a.md"})

	var shown strings.Builder
	s := sheet{w: &shown, width: 100, folds: true}
	printPicture(s, api.Card{Files: files, FilesTotal: 25, Added: 42, Removed: 3})
	for _, want := range []string{"src/gen/  20 files", "   40 +", "src/gen/run.sh", "new executable", "README.md", "a.md => docs/a.md", "… and 2 files more"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is not in\n%s", want, shown.String())
		}
	}
	if strings.Contains(shown.String(), "f07.go") {
		t.Errorf("the folder is not folded:\n%s", shown.String())
	}

	// Where a card is read to be read, and where there are few, every path has a line.
	for _, s := range []sheet{{w: &shown, width: 100}, {w: &shown, width: 100, folds: true}} {
		shown.Reset()
		if s.folds {
			files = files[10 : 24-3]
		}
		printPicture(s, api.Card{Files: files, FilesTotal: len(files)})
		if !strings.Contains(shown.String(), "src/gen/f12.go") {
			t.Errorf("folds %v:\n%s", s.folds, shown.String())
		}
	}
}

func TestAFileThatIsMarkedOrGoesAwayIsNeverFolded(t *testing.T) {
	card := api.Card{MarksTotal: 1, Marks: []api.Mark{{Path: "src/f07.go", Kind: "hidden", Says: "odd"}}}
	for i := range 20 {
		card.Files = append(card.Files, api.FileLine{Path: fmt.Sprintf("src/f%02d.go", i), Status: "changed", Added: 1})
	}
	card.Files[9].Status, card.FilesTotal = "deleted", len(card.Files)
	var shown strings.Builder
	s := sheet{w: &shown, width: 100, folds: true}
	printPicture(s, card)
	if got := shown.String(); !strings.Contains(got, "src/f07.go") || !strings.Contains(got, "deleted  src/f09.go") || !strings.Contains(got, "src/  18 files") {
		t.Errorf("shown:\n%s", got)
	}

	card.MarksTotal = 2 // one more than the card holds: it may be any file's
	shown.Reset()
	printPicture(s, card)
	if got := shown.String(); !strings.Contains(got, "src/f12.go") {
		t.Errorf("shown:\n%s", got)
	}
}

// Marks are for somebody to read: each reason where a card asks, the rarest first, and each path where it is looked at.
func TestACardThatAsksShowsEachReasonOfManyMarks(t *testing.T) {
	card := api.Card{MarksWord: true}
	for i := range 99 {
		card.Marks = append(card.Marks, api.Mark{Path: fmt.Sprintf("m%02d", i), Says: "odd"})
	}
	card.Marks = append(card.Marks, api.Mark{Path: "z/.envrc", Says: "runs"})
	for _, c := range []struct {
		folds bool
		total int
		want  string
		lines int
	}{
		{true, 100, "! z/.envrc: runs\n  ! m00, m01 and 97 more: odd\n  approval show lists each of 100 marks\n", 5},
		{false, 100, "! m98: odd\n  ! z/.envrc: runs\n", 102},
		{true, 105, "100 marks\n  … and 5 marks more\n", 6},
		{false, 105, "z/.envrc: runs\n  … and 5 marks more\n", 103},
	} {
		var shown strings.Builder
		card.MarksTotal = c.total
		printMarks(sheet{w: &shown, width: 100, folds: c.folds}, card)
		if got := shown.String(); !strings.HasSuffix(got, c.want) || strings.Count(got, "\n") != c.lines {
			t.Errorf("folds %t, %d marks:\n%s", c.folds, c.total, got[max(0, len(got)-200):])
		}
	}
}

func TestARunThatAsksNobodySaysWhy(t *testing.T) {
	d := newDaemon(t)
	d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
	d.detail, d.question = waiting()
	for words, want := range map[string]bool{"": true, "--approve=later": true} {
		args := []string{"run", "--request", "do"}
		if words != "" {
			args = append(args, words)
		}
		got := d.cli(append(args, "--", "true")...)
		if said := strings.Contains(got.out, "you are not asked here: standard input is not a terminal"); said != want || got.code != exitWaiting {
			t.Errorf("%q: exit %d, out %q", words, got.code, got.out)
		}
	}
}

func TestAYesBeforehandThatDidNotCountSaysWhy(t *testing.T) {
	for marked, want := range map[bool]bool{true: true, false: false} {
		d := newDaemon(t)
		d.accepted = api.Change{ID: "chg-00000001", Text: "do"}
		d.detail, d.question = waiting()
		d.detail.Proposal.Card.MarksWord = marked
		got := d.cli("run", "--request", "do", "--approve", "yes", "--", "true")
		if said := strings.Contains(got.out, "--approve yes was said before anybody saw the card"); said != want || got.code != exitWaiting {
			t.Errorf("marked %t: exit %d, out %q", marked, got.code, got.out)
		}
	}
}

func TestAShortDiffIsShownWithTheCardAndNoLineOfItIsTakenForOurs(t *testing.T) {
	d := newDaemon(t)
	d.detail, d.question = waiting()
	d.stream = "--- a\n+++ b\n+// " + strings.Repeat("word ", 60) + "\n+added\x1b[2J\n+\t\treturn\nchg-00000001 landed on main\n"
	s := d.sit(t, "approve", "chg-00000001")
	shown := s.see(`\[a\]pprove exactly this`)
	if !strings.Contains(shown, "\r\n| chg-00000001 landed on main") || !strings.Contains(shown, `+added\x1b[2J`) || !strings.Contains(shown, "+        return") {
		t.Errorf("shown: %q", shown)
	}
	if !strings.Contains(shown, "\r\n| … word ") || strings.Contains(shown, "\r\n| word") {
		t.Errorf("what is left of a long line is taken for another: %q", shown)
	}
	s.press("l\n")
	s.leaves()

	d.stream = strings.Repeat("+line\n", diffAtOnce+1)
	s = d.sit(t, "approve", "chg-00000001")
	if shown := s.see(`\[a\]pprove exactly this`); strings.Contains(shown, "+line") || !strings.Contains(shown, "the diff is long: d shows it") {
		t.Errorf("a long diff is shown unasked: %q", shown)
	}
	s.press("l\n")
	s.leaves()
}
