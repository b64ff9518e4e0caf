package cli

import (
	"bytes"
	"strings"
	"testing"

	"sallyport/internal/door/api"
)

func TestACardNamesTheTreeThatItsChecksRanOn(t *testing.T) {
	moved := &api.Moved{Head: "aaaaaaaaaaaaaaaa", Commits: 7, Subjects: []string{"Newest\x1b[31m", "Older"}, Paths: []string{"a.go"}, PathsTotal: 3}
	checks := []api.CheckResult{{Command: "make test", OK: true}}
	for name, test := range map[string]struct {
		card     api.Card
		has, not []string
	}{
		"the branch stands still": {api.Card{Checks: checks, Kind: "edit"}, []string{"run on exactly this tree:"}, []string{"moved"}},
		"it has moved": {api.Card{Checks: checks, Kind: "edit", Moved: moved},
			[]string{"exactly this tree; the branch has moved, so they run again", "main has moved by 7 commits", "Newest", "… and 5 more commits", "a.go, … and 2 more"}, []string{"\x1b[31m"}},
		"it was rewritten":              {api.Card{Kind: "edit", Moved: &api.Moved{Rewritten: true, Commits: 1}}, []string{"by 1 commit since", "was rewritten"}, nil},
		"they ran on what would land":   {api.Card{Checks: checks, Moved: moved, ChecksOn: &api.Ground{Head: moved.Head, Tree: "bbbbbbbbbbbbbbbb"}}, []string{"run on what would land on main as it is now (tree bbbbbbbbbbbb):"}, []string{"exactly this tree"}},
		"it has moved again since then": {api.Card{Checks: checks, Moved: moved, ChecksOn: &api.Ground{Head: "cccccccccccccccc", Tree: "bbbb"}}, []string{"what would have landed on main at cccccccccccc"}, []string{"as it is now"}},
		"marks of what would land": {api.Card{Marks: []api.Mark{{Path: "lib/x", Says: "git takes it"}}, MarksTotal: 1, MarksWord: true, MarksOn: &api.Ground{Head: "cccccccccccccccc", Tree: "dddddddddddddddd"}},
			[]string{"marked, with what would land on main at cccccccccccc (tree dddddddddddd): look before", "lib/x: git takes it"}, nil},
		"its lines take too long to count": {api.Card{FilesTotal: 1, Files: []api.FileLine{{Path: "big", Status: "changed", Uncounted: true}}},
			[]string{"  1 file, lines not counted: there are too many\n  changed  big\n"}, []string{"+0 -0", "binary"}},
		"a rollback has no checks at all": {api.Card{Kind: "revert", Moved: moved}, []string{"main has moved by 7 commits"}, []string{"run on"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			test.card.Branch = "main"
			printCard(sheet{w: &out, width: 100}, "chg-00000001", api.Proposal{Card: test.card})
			for _, want := range test.has {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, out.String())
				}
			}
			for _, not := range test.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("it says %q:\n%s", not, out.String())
				}
			}
		})
	}
}

func TestAChangeThatDoesNotFitItsBranchIsToBeRedoneBeforeItIsApproved(t *testing.T) {
	d := newDaemon(t)
	for drift, first := range map[string]string{"a.go": "redo:    sallyport change redo", "": "approve: sallyport approve"} {
		d.detail, d.question = waiting()
		card := &d.detail.Proposal.Card
		card.Moved, card.ChecksOn = &api.Moved{}, &api.Ground{}
		if drift != "" {
			card.Drift = []string{drift}
		}
		for _, args := range [][]string{{"change", "show"}, {"change", "watch"}} {
			got := d.cli(append(args, "chg-00000001")...)
			if _, ways, _ := strings.Cut(got.out, "waits for a person\n  "); !strings.HasPrefix(ways, first) || strings.Count(ways, "redo: ") != 1 {
				t.Errorf("%v of one with drift %q:\n%s", args, drift, got.out)
			}
		}
	}
}

func TestWhoIsAskedSecondReadsWhatTheFirstYesSaysOfTheCommit(t *testing.T) {
	said := api.Approval{Change: "chg-00000001", Decision: api.Pending, Message: "as ada\x1b[31m words it", Unsigned: true}
	for name, test := range map[string]struct {
		alter func(*api.Approval)
		shown bool
	}{
		"a yes was given": {func(*api.Approval) {}, true},
		"none was given":  {func(a *api.Approval) { a.Message, a.Unsigned = "", false }, false},
		"all is said":     {func(a *api.Approval) { a.Decision = "approved" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, out := said, bytes.Buffer{}
			test.alter(&a)
			printAsked(sheet{w: &out, width: 100}, api.Question{Approval: a})
			for _, words := range []string{"a yes before yours has it land as: as ada\\x1b[31m words it\n", "a yes before yours has it land unsigned\n"} {
				if strings.Contains(out.String(), words) != test.shown {
					t.Errorf("%q is shown: %v\n%s", words, !test.shown, out.String())
				}
			}
		})
	}
}
