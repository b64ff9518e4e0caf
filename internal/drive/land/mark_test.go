package land_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/policy"
)

func TestWhatIsMarkedNeedsAWordOfItsOwn(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, _ := h.Daemon()
		chg := h.Envrc(c, request.Yes) // said before anybody saw it
		d := h.Is(c, chg, change.AwaitingApproval)
		if ms := d.Proposal.Card.Marks; len(ms) != 1 || ms[0].Path != ".envrc" || !d.Proposal.Card.MarksWord {
			t.Fatalf("the card's marks are %+v", ms)
		}
		say := func(marked bool, by audit.Actor) error {
			return c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, by, approve.Words{Via: "command line", Marked: marked})
		}
		err := say(false, h.By())
		if !errors.Is(err, approval.ErrMarked) || problem.KindOf(err) != problem.Refused || !strings.Contains(problem.Of(err).Next, "--marked") || !strings.Contains(err.Error(), ".envrc") {
			t.Errorf("a plain yes: %v", err)
		}
		h.Is(c, chg, change.AwaitingApproval)
		if err := say(true, h.By()); err != nil {
			t.Fatal(err)
		}
		h.Is(c, chg, change.Finalized)
		// What goes back was there before: it needs no word.
		h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int {
			if os.Remove(filepath.Join(tree, ".envrc")) != nil {
				return 1
			}
			return 0
		}
		away := h.Ask(c)
		h.Yes(c, away)
		h.Is(c, h.Undo(c, away, request.Yes), change.Finalized)
	})
}

// A yes covers what a card lists, and nothing that no list shows.
func TestMoreMarksThanACardListsGetNoYes(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		for _, n := range []int{proposal.MarksShown + 1, proposal.MarksShown} {
			h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int {
				for i := range n {
					dir := filepath.Join(tree, fmt.Sprintf("d%d", i))
					if os.Mkdir(dir, 0o755) != nil || os.WriteFile(filepath.Join(dir, ".envrc"), nil, 0o644) != nil {
						return 1
					}
				}
				return 0
			}
			c, end := h.Daemon()
			chg := h.Ask(c)
			d := h.Is(c, chg, change.AwaitingApproval)
			err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line", Marked: true})
			if n > proposal.MarksShown {
				if problem.KindOf(err) != problem.Refused || problem.Of(err).Next != "sallyport refuse "+string(chg) || !strings.Contains(err.Error(), "has 1001 marks, and its card lists 1000") {
					t.Errorf("%d marks: %v, next %q", n, err, problem.Of(err).Next)
				}
				h.Is(c, chg, change.AwaitingApproval)
			} else if err != nil {
				t.Errorf("%d marks: %v", n, err)
			}
			end()
		}
	})
}

func TestThePolicySaysWhatBecomesOfWhatIsMarked(t *testing.T) {
	for marks, want := range map[policy.Marks]change.State{policy.MarksShow: change.Finalized, policy.MarksRefuse: change.Failed, policy.MarksAsk: change.AwaitingApproval} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Rules: policy.Rules{Marks: marks}}}
			c, _ := h.Daemon()
			d := h.Is(c, h.Envrc(c, request.Yes), want)
			if len(d.Proposal.Card.Marks) != 1 {
				t.Errorf("%s: the card's marks are %+v", marks, d.Proposal.Card.Marks)
			}
			if marks == policy.MarksRefuse && !strings.Contains(d.Change.Reason, ".envrc") {
				t.Errorf("it says %q", d.Change.Reason)
			}
		})
	}
}

func TestMarksOfTheTreeThatLandsAreShownBeforeItLands(t *testing.T) {
	for _, checks := range [][]string{nil, {"make test"}} {
		for _, said := range []request.Approve{request.Later, request.Yes} {
			drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
				c, _ := h.Daemon()
				chg := h.Halves(c, said, checks...)
				d := h.Show(c, chg)
				first := d.Proposal.Digest
				if said == request.Later {
					if len(d.Proposal.Card.Marks) != 0 {
						t.Fatalf("the proposed tree is marked: %+v", d.Proposal.Card.Marks)
					}
					h.Yes(c, chg)
				}
				before := h.Git("rev-parse", "main")

				d = h.Is(c, chg, change.AwaitingApproval)
				card := d.Proposal.Card
				if d.Landing != nil || len(card.Marks) != 1 || card.Marks[0].Path != "lib/x" || !card.MarksWord || card.MarksOn == nil || string(card.MarksOn.Head) != before {
					t.Fatalf("landing %+v, marks %+v on %+v", d.Landing, card.Marks, card.MarksOn)
				}
				if len(card.Checks) != len(checks) || (card.ChecksOn != nil) != (checks != nil) {
					t.Errorf("the card has the checks %+v on %+v", card.Checks, card.ChecksOn)
				}
				if !strings.Contains(d.Change.Reason, "lib/x: git takes it for a repository") || !strings.Contains(d.Change.Next, "approval show") {
					t.Errorf("the reason is %q, next %q", d.Change.Reason, d.Change.Next)
				}

				say := func(read proposal.Digest, marked bool) error {
					return c.Approve(gittest.Context(t), d.Approval.ID, read, h.By(), approve.Words{Via: "command line", Marked: marked})
				}
				if err := say(d.Proposal.Digest, false); !errors.Is(err, approval.ErrMarked) {
					t.Errorf("a plain yes: %v", err)
				}
				if err := say(first, true); said == request.Later && !errors.Is(err, proposal.ErrSuperseded) {
					t.Errorf("a yes to the card before: %v", err)
				}
				if err := say(d.Proposal.Digest, true); err != nil {
					t.Fatal(err)
				}
				h.Is(c, chg, change.Finalized)
				if verbs := h.Verbs(c, chg); drivetest.Count(verbs, "passed a check on what lands") != len(checks) {
					t.Errorf("the audit log says %q", verbs)
				}
			})
		}
	}
}

func TestMarksThatComeWithTheBranchAreAskedAboutAsOftenAsTheyChange(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = func(_ int, tree string, _ <-chan struct{}) int {
			return drivetest.Put(tree, "\u0441\u043e\u0440.go", "x\n")
		}
		c, _ := h.Daemon()
		chg := h.Ask(c)
		marked := func(want ...string) {
			t.Helper()
			d := h.Is(c, chg, change.AwaitingApproval)
			if len(d.Proposal.Card.Marks) != len(want) {
				t.Fatalf("marks: %+v", d.Proposal.Card.Marks)
			}
			for i, w := range want {
				if !strings.Contains(d.Proposal.Card.Marks[i].Says, w) {
					t.Errorf("it is marked %+v, want %q", d.Proposal.Card.Marks[i], w)
				}
			}
			if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line", Marked: true}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		marked()
		h.Is(c, chg, change.Finalized) // its name is that of nothing else

		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "rm", "-q", "--", "\u0441\u043e\u0440.go")
		h.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "away")
		chg = h.Ask(c)
		h.Commits("cop.go", "x\n", "a twin")
		marked()
		h.Commits("other.go", "x\n", "elsewhere") // the same mark on another tree was shown
		h.Commits("co\u0440.go", "x\n", "another twin")
		marked(`"cop.go"`)
		marked(`"co` + "\u0440" + `.go"`)
		h.Is(c, chg, change.Finalized)
	})
}

func TestThePolicyHoldsForMarksOfTheTreeThatLands(t *testing.T) {
	for marks, word := range map[policy.Marks]bool{policy.MarksShow: false, policy.MarksRefuse: true} {
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			h.Parts.Rules = drivetest.Rules{Judging: grounds.Judging{Rules: policy.Rules{Marks: marks}}}
			c, _ := h.Daemon()
			chg := h.Halves(c, request.Yes)
			d := h.Is(c, chg, change.AwaitingApproval)
			if len(d.Proposal.Card.Marks) != 1 || d.Proposal.Card.MarksWord != word {
				t.Fatalf("%s: %+v, a word is needed: %v", marks, d.Proposal.Card.Marks, d.Proposal.Card.MarksWord)
			}
			if err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line", Marked: word}); err != nil {
				t.Fatal(err)
			}
			if marks == policy.MarksShow {
				h.Is(c, chg, change.Finalized)
			} else if d := h.Is(c, chg, change.AwaitingApproval); !strings.Contains(d.Change.Next, "redo") || !strings.Contains(d.Change.Reason, "marks: refuse") {
				t.Errorf("%s: next %q, %q", marks, d.Change.Next, d.Change.Reason)
			}
		})
	}
}
