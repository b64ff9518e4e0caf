package land_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
)

// fickle is a policy that loads as often as it is let.
type fickle struct {
	drivetest.Rules
	loads atomic.Int32
}

func (f *fickle) Decidable() error {
	if f.loads.Add(-1) >= 0 {
		return nil
	}
	return problem.Case(config.ErrUnloaded, "vi policy.yaml", "policy.yaml:3:1: oops")
}

// always is often enough.
const always = 1 << 20

func TestWhatIsApprovedWaitsForAPolicyThatLoads(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		book := &fickle{}
		h.Parts.Rules = book
		h.Cage.Play = drivetest.Writes("two\n")
		c, end := h.Daemon()
		chg := h.Ask(c)
		d := h.Is(c, chg, change.AwaitingApproval)
		err := c.Approve(gittest.Context(t), d.Approval.ID, d.Proposal.Digest, h.By(), approve.Words{})
		if !errors.Is(err, config.ErrUnloaded) {
			t.Fatalf("it is approved: %v", err)
		}
		if p := problem.Of(err); p.Kind != problem.Refused || !strings.Contains(p.Text, "policy.yaml:3:1") || p.Next != "vi policy.yaml" {
			t.Errorf("it is refused: %v, next %q", err, p.Next)
		}
		h.Is(c, chg, change.AwaitingApproval)

		book.loads.Store(1) // for the yes, and no longer
		h.Yes(c, chg)
		for range 2 {
			time.Sleep(3 * ledger.RetryWait)
			d = h.Is(c, chg, change.Landing)
			if !strings.Contains(d.Change.Reason, "policy.yaml:3:1") || d.Change.Next != "vi policy.yaml" || d.Change.Attempts > 0 {
				t.Errorf("it says %q, next %q, after %d attempts", d.Change.Reason, d.Change.Next, d.Change.Attempts)
			}
			end() // and the next daemon waits, too
			c, end = h.Daemon()
		}
		if n := h.Git("rev-list", "--count", "main"); n != "1" {
			t.Errorf("main has %s commits", n)
		}
		book.loads.Store(always)
		time.Sleep(time.Minute)
		h.Is(c, chg, change.Finalized)
	})
}

func TestWhatWasApprovedBeforehandNeedsAPolicyThatLoads(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		book := &fickle{}
		h.Parts.Rules = book
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		asked := request.Request{By: h.By(), Text: "Change the page", Project: git.Project{Top: h.Repo}, Agent: "played", Argv: []string{"true"}, Approve: request.Yes}
		if _, err := c.TakeRequest(gittest.Context(t), asked, nil); !errors.Is(err, config.ErrUnloaded) {
			t.Errorf("it is accepted: %v", err)
		}
		if rows, err := c.List(gittest.Context(t), change.Filter{}); err != nil || len(rows) > 0 {
			t.Errorf("%d rows were written: %v", len(rows), err)
		}

		book.loads.Store(1) // it breaks while the agent works: the work waits for a person
		r, err := c.TakeRequest(gittest.Context(t), asked, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Is(c, r.Change.ID, change.AwaitingApproval)
		book.loads.Store(always)
		h.Yes(c, r.Change.ID)
		h.Is(c, r.Change.ID, change.Finalized)
	})
}

// The way back is never held: what goes back has been there before.
func TestARollbackNeedsNoPolicyThatLoads(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		book := &fickle{}
		book.loads.Store(always)
		h.Parts.Rules = book
		h.Cage.Play = drivetest.Writes("two\n")
		c, _ := h.Daemon()
		chg := h.Ask(c)
		h.Yes(c, chg)
		h.Is(c, chg, change.Finalized)
		book.loads.Store(0)
		h.Is(c, h.Undo(c, chg, request.Yes), change.Finalized)
		h.Is(c, chg, change.RolledBack)
	})
}
