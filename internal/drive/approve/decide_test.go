package approve_test

import (
	"errors"
	"sync"
	"testing"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/who/person"
)

// atOnce runs all at one time and returns what each of them said.
func atOnce(all ...func() error) []error {
	said := make([]error, len(all))
	var start, done sync.WaitGroup
	start.Add(1)
	for i, do := range all {
		done.Go(func() {
			start.Wait()
			said[i] = do()
		})
	}
	start.Done()
	done.Wait()
	return said
}

func TestTwoApprovalsAtOnceAreOne(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		yes := func() error {
			return c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"})
		}
		for i, err := range atOnce(yes, yes, yes, yes) {
			if err != nil { // to say the same again is no error
				t.Errorf("approval %d: %v", i, err)
			}
		}
		h.Is(c, chg, change.Finalized)
		if v := h.Verbs(c, chg); drivetest.Count(v, "approved") != 1 || drivetest.Count(v, "began landing") != 1 || drivetest.Count(v, "landed") != 1 {
			t.Errorf("the audit log says %q", v)
		}
		if n := h.Git("rev-list", "--count", "main"); n != "2" {
			t.Errorf("main has %s commits, want 2", n)
		}
	})
}

func TestOfAYesANoAndACancelAtOnceExactlyOneWins(t *testing.T) {
	wins := map[change.State]int{}
	for range disktest.Sample(t, make([]struct{}, 6), 3) { // who wins is for the scheduler to say
		drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
			h.Cage.Play = drivetest.Writes("two\n")
			c, _ := h.Daemon()
			chg := h.Ask(c)
			d := h.Is(c, chg, change.AwaitingApproval)
			said := atOnce(
				func() error {
					return c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: "command line"})
				},
				func() error { return c.Refuse(gittest.Context(t), d.Approval.ID, h.By(), "no") },
				func() error { return c.Cancel(gittest.Context(t), chg, h.By(), "enough") },
			)
			end := h.Show(c, chg).Change.State
			wins[end]++
			won := map[change.State]int{change.Finalized: 0, change.Rejected: 1, change.Cancelled: 2}
			winner, ok := won[end]
			if !ok {
				t.Fatalf("it is %s", end)
			}
			late := end == change.Cancelled && said[0] == nil // a yes whose landing had not begun was withdrawn
			for i, err := range said {
				if i == winner && err != nil {
					t.Errorf("it is %s, and who did that heard: %v", end, err)
				}
				if i != winner && problem.KindOf(err) != problem.Conflict && (i != 0 || !late) {
					t.Errorf("it is %s, and loser %d heard: %v", end, i, err)
				}
			}
			v := h.Verbs(c, chg)
			if n := drivetest.Count(v, "approved") + drivetest.Count(v, "refused") + drivetest.Count(v, "cancelled"); n != 1 && (!late || n != 2) {
				t.Errorf("the audit log says %q", v)
			}
			if n := h.Git("rev-list", "--count", "main"); (n == "2") != (end == change.Finalized) {
				t.Errorf("it is %s and main has %s commits", end, n)
			}
		})
	}
	t.Logf("who won: %v", wins)
}

// planted is a key in the form of one; nobody has it.
const planted = "ghp_" + "9fK2mQx7LbR4vTz1WcN8sYd3HjP6gUe5AoXi"

func TestOnlyTheOwnerDecidesAndOnlyOnWhatTheyRead(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		ctx, mallory := t.Context(), audit.Actor{Kind: "person", Name: "mallory", UID: h.Owner.UID, Person: "psn-mallory0"}
		for what, err := range map[string]error{
			"approve":  c.Approve(ctx, d.Approval.ID, d.Proposal.Digest, mallory, approve.Words{Via: ""}),
			"refuse":   c.Refuse(ctx, d.Approval.ID, mallory, "no"),
			"cancel":   c.Cancel(ctx, chg, mallory, "no"),
			"an agent": c.Approve(ctx, d.Approval.ID, d.Proposal.Digest, audit.Actor{Kind: "agent", Name: "ann", UID: h.Owner.UID, Person: h.Owner.ID}, approve.Words{Via: ""}),
		} {
			if !errors.Is(err, person.ErrNotOwner) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := c.Approve(ctx, d.Approval.ID, d.Proposal.Digest[1:]+"0", h.By(), approve.Words{Via: ""}); !errors.Is(err, proposal.ErrSuperseded) {
			t.Errorf("another digest: %v", err)
		}
		h.Is(c, chg, change.AwaitingApproval)
		if err := c.Refuse(ctx, d.Approval.ID, h.By(), "it holds "+planted); err != nil {
			t.Fatal(err)
		}
		if d := h.Is(c, chg, change.Rejected); d.Approval.Reason != "it holds [secret: github-token]" {
			t.Errorf("it is refused because %q", d.Approval.Reason)
		}
		if err := c.Approve(ctx, d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{Via: ""}); !errors.Is(err, approval.ErrDecided) && !errors.Is(err, change.ErrMoved) {
			t.Errorf("approved after it was refused: %v", err)
		}
	})
}

func TestWhatAPersonWantsDifferentIsKeptWithoutSecrets(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		_, show, c := proposedWith(h, drivetest.SwapPrompt)
		if err := c.Rework(gittest.Context(t), show().Approval.ID, h.By(), approval.ViaChat, "say Hi to "+planted); err != nil {
			t.Fatal(err)
		}
		if a := show().Approval; a.Decision != approval.Reworked || a.Reason != "say Hi to [secret: github-token]" {
			t.Errorf("%+v", a)
		}
	})
}
