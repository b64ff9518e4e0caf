package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/policy"
)

// envrc is an agent that leaves a file that a tool runs when a person enters the folder.
func (h *home) envrc(c *control.Controller, approve request.Approve) id.Change {
	h.t.Helper()
	h.cage.play = func(_ int, tree string, _ <-chan struct{}) int { return put(tree, ".envrc", "echo hello\n") }
	r, err := c.Request(h.t.Context(), request.Request{By: h.by(), Text: "Set up", Project: git.Project{Top: h.repo}, Agent: "played", Argv: []string{"true"}, Approve: approve}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.Change.ID
}

func TestWhatIsMarkedNeedsAWordOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, _ := h.daemon()
		chg := h.envrc(c, request.Yes) // said before anybody saw it
		d := h.is(c, chg, change.AwaitingApproval)
		if ms := d.Proposal.Card.Marks; len(ms) != 1 || ms[0].Path != ".envrc" || !d.Proposal.Card.MarksWord {
			t.Fatalf("the card's marks are %+v", ms)
		}
		say := func(marked bool, by audit.Actor) error {
			return c.Approve(t.Context(), d.Approval.ID, d.Proposal.Digest, by, approve.Words{Via: "command line", Marked: marked})
		}
		err := say(false, h.by())
		if !errors.Is(err, approval.ErrMarked) || problem.KindOf(err) != problem.Refused || !strings.Contains(problem.Of(err).Next, "--marked") || !strings.Contains(err.Error(), ".envrc") {
			t.Errorf("a plain yes: %v", err)
		}
		h.is(c, chg, change.AwaitingApproval)
		if err := say(true, h.by()); err != nil {
			t.Fatal(err)
		}
		h.is(c, chg, change.Finalized)
		// What goes back was there before: it needs no word.
		h.cage.play = func(_ int, tree string, _ <-chan struct{}) int {
			if os.Remove(filepath.Join(tree, ".envrc")) != nil {
				return 1
			}
			return 0
		}
		away := h.ask(c)
		h.yes(c, away)
		h.is(c, h.undo(c, away, request.Yes), change.Finalized)
	})
}

func TestThePolicySaysWhatBecomesOfWhatIsMarked(t *testing.T) {
	for marks, want := range map[policy.Marks]change.State{policy.MarksShow: change.Finalized, policy.MarksRefuse: change.Failed, policy.MarksAsk: change.AwaitingApproval} {
		bubble(t, func(t *testing.T, h *home) {
			h.parts.Rules = rules{judging: grounds.Judging{Rules: policy.Rules{Marks: marks}}}
			c, _ := h.daemon()
			d := h.is(c, h.envrc(c, request.Yes), want)
			if len(d.Proposal.Card.Marks) != 1 {
				t.Errorf("%s: the card's marks are %+v", marks, d.Proposal.Card.Marks)
			}
			if marks == policy.MarksRefuse && !strings.Contains(d.Change.Reason, ".envrc") {
				t.Errorf("it says %q", d.Change.Reason)
			}
		})
	}
}

// halves asks about a change that brings one half of a repository, while the branch gets the other.
func (h *home) halves(c *control.Controller, approve request.Approve, checks ...string) id.Change {
	h.t.Helper()
	h.checkedBy(func(tree string) int {
		for _, folder := range []string{"lib/x/objects", "lib/x/refs"} {
			if os.MkdirAll(filepath.Join(tree, folder), 0o755) != nil || put(tree, folder+"/a", "x\n") != 0 {
				return 1
			}
		}
		if err := os.MkdirAll(filepath.Join(h.repo, "lib/x"), 0o755); err != nil {
			h.t.Error(err)
		}
		h.commits("lib/x/HEAD", "of the table\n", "The other half")
		return 0
	}, func(string) int { return 0 })
	r, err := c.Request(h.t.Context(), request.Request{
		By: h.by(), Text: "Add a half", Project: git.Project{Top: h.repo}, Agent: "played", Argv: []string{"true"}, Approve: approve, Checks: checks,
	}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return r.Change.ID
}

func TestMarksOfTheTreeThatLandsAreShownBeforeItLands(t *testing.T) {
	for _, checks := range [][]string{nil, {"make test"}} {
		for _, said := range []request.Approve{request.Later, request.Yes} {
			bubble(t, func(t *testing.T, h *home) {
				c, _ := h.daemon()
				chg := h.halves(c, said, checks...)
				d := h.show(c, chg)
				first := d.Proposal.Digest
				if said == request.Later {
					if len(d.Proposal.Card.Marks) != 0 {
						t.Fatalf("the proposed tree is marked: %+v", d.Proposal.Card.Marks)
					}
					h.yes(c, chg)
				}
				before := h.git("rev-parse", "main")

				d = h.is(c, chg, change.AwaitingApproval)
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
					return c.Approve(t.Context(), d.Approval.ID, read, h.by(), approve.Words{Via: "command line", Marked: marked})
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
				h.is(c, chg, change.Finalized)
				if verbs := h.verbs(c, chg); count(verbs, "passed a check on what lands") != len(checks) {
					t.Errorf("the audit log says %q", verbs)
				}
			})
		}
	}
}

func TestMarksThatComeWithTheBranchAreAskedAboutAsOftenAsTheyChange(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		h.cage.play = func(_ int, tree string, _ <-chan struct{}) int { return put(tree, "\u0441\u043e\u0440.go", "x\n") }
		c, _ := h.daemon()
		chg := h.ask(c)
		marked := func(want ...string) {
			t.Helper()
			d := h.is(c, chg, change.AwaitingApproval)
			if len(d.Proposal.Card.Marks) != len(want) {
				t.Fatalf("marks: %+v", d.Proposal.Card.Marks)
			}
			for i, w := range want {
				if !strings.Contains(d.Proposal.Card.Marks[i].Says, w) {
					t.Errorf("it is marked %+v, want %q", d.Proposal.Card.Marks[i], w)
				}
			}
			if err := c.Approve(t.Context(), d.Approval.ID, d.Proposal.Digest, h.by(), approve.Words{Via: "command line", Marked: true}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		marked()
		h.is(c, chg, change.Finalized) // its name is that of nothing else

		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "rm", "-q", "--", "\u0441\u043e\u0440.go")
		h.git("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-qm", "away")
		chg = h.ask(c)
		h.commits("cop.go", "x\n", "a twin")
		marked()
		h.commits("other.go", "x\n", "elsewhere") // the same mark on another tree was shown
		h.commits("co\u0440.go", "x\n", "another twin")
		marked(`"cop.go"`)
		marked(`"co` + "\u0440" + `.go"`)
		h.is(c, chg, change.Finalized)
	})
}

func TestThePolicyHoldsForMarksOfTheTreeThatLands(t *testing.T) {
	for marks, word := range map[policy.Marks]bool{policy.MarksShow: false, policy.MarksRefuse: true} {
		bubble(t, func(t *testing.T, h *home) {
			h.parts.Rules = rules{judging: grounds.Judging{Rules: policy.Rules{Marks: marks}}}
			c, _ := h.daemon()
			chg := h.halves(c, request.Yes)
			d := h.is(c, chg, change.AwaitingApproval)
			if len(d.Proposal.Card.Marks) != 1 || d.Proposal.Card.MarksWord != word {
				t.Fatalf("%s: %+v, a word is needed: %v", marks, d.Proposal.Card.Marks, d.Proposal.Card.MarksWord)
			}
			if err := c.Approve(t.Context(), d.Approval.ID, d.Proposal.Digest, h.by(), approve.Words{Via: "command line", Marked: word}); err != nil {
				t.Fatal(err)
			}
			if marks == policy.MarksShow {
				h.is(c, chg, change.Finalized)
			} else if d := h.is(c, chg, change.AwaitingApproval); !strings.Contains(d.Change.Next, "redo") || !strings.Contains(d.Change.Reason, "marks: refuse") {
				t.Errorf("%s: next %q, %q", marks, d.Change.Next, d.Change.Reason)
			}
		})
	}
}
