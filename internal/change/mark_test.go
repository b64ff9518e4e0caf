package change_test

import (
	"errors"
	"strings"
	"testing"

	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/change"
	"sallyport/internal/git"
	"sallyport/internal/id"
	"sallyport/internal/policy"
	"sallyport/internal/problem"
	"sallyport/internal/request"
)

// envrc is an agent that leaves a file that a tool runs when a person enters the folder.
func (h *home) envrc(c *change.Controller, approve request.Approve) id.Change {
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
			return c.ApproveAs(t.Context(), d.Approval.ID, d.Proposal.Digest, by, change.Words{Via: "command line", Marked: marked})
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
		h.is(c, h.undo(c, chg, request.Yes), change.Finalized)
	})
}

func TestThePolicySaysWhatBecomesOfWhatIsMarked(t *testing.T) {
	for marks, want := range map[policy.Marks]change.State{policy.MarksShow: change.Finalized, policy.MarksRefuse: change.Failed, policy.MarksAsk: change.AwaitingApproval} {
		bubble(t, func(t *testing.T, h *home) {
			h.parts.Rules = rules{judging: change.Judging{Rules: policy.Rules{Marks: marks}}}
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
