package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/drivetest"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

func TestASecondRollbackOfWhatIsBeingRolledBackIsRefusedAndNamesTheFirst(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, _, chg := h.Landed()
		first := h.Undo(c, chg, request.Later)
		_, err := c.Rollback(gittest.Context(t), chg, h.By(), "", request.Yes)
		if p := problem.Of(err); err == nil || p.Kind != problem.Conflict || p.Next != "sallyport approve "+string(first) || !strings.Contains(p.Text, string(first)) {
			t.Fatalf("the second rollback: %v", err)
		}
		h.Yes(c, first)
		h.Is(c, first, change.Finalized)
		if _, err := c.Rollback(gittest.Context(t), chg, h.By(), "", request.Yes); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "was rolled back already, by "+string(first)) {
			t.Errorf("a rollback of what is rolled back: %v", err)
		}
	})
}

// A rollback can be asked for while the first one waits only by an earlier sallyport's database.
func TestOfTwoRollbacksOneIsDoneAndTheOtherEndsWithAnAnswer(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, end, chg := h.Landed()
		first := h.Undo(c, chg, request.Later)
		second, c, _ := h.Twin(end, first)
		h.Is(c, second, change.AwaitingApproval)
		h.Yes(c, second)
		h.Is(c, second, change.Finalized)
		d := h.Is(c, first, change.Cancelled)
		if want := string(chg) + " was rolled back already, by " + string(second); d.Change.Reason != want || d.Change.Next != "sallyport change show "+string(second) {
			t.Errorf("it ended with %q, next %q; want %q", d.Change.Reason, d.Change.Next, want)
		}
		if all, err := c.Approvals(gittest.Context(t), true, 0); err != nil || len(all) > 0 {
			t.Errorf("still asked of a person: %v, %v", all, err)
		}
	})
}

// As an earlier sallyport left it: approved, and landing, when the other had landed already.
func TestARollbackOfWhatIsRolledBackEndsWhereverItStands(t *testing.T) {
	drivetest.Bubble(t, func(t *testing.T, h *drivetest.Home) {
		c, end, chg := h.Landed()
		first := h.Undo(c, chg, request.Later)
		h.Yes(c, first)
		h.Is(c, first, change.Finalized)
		second, c, end := h.Twin(end, first)
		if d := h.Is(c, second, change.Cancelled); !strings.Contains(d.Change.Reason, "rolled back already, by "+string(first)) {
			t.Errorf("it ended with %q", d.Change.Reason)
		}
		end()
		h.Tx(func(ctx context.Context, tx store.Tx) error {
			row, err := tx.Change(ctx, second)
			if err != nil {
				return err
			}
			row.State, row.Due, row.Next = change.Landing, time.Now(), ""
			if err := tx.MoveChange(ctx, change.Cancelled, row); err != nil {
				return err
			}
			l, _, err := tx.LandingOf(ctx, first)
			if err != nil {
				return err
			}
			l.ID, l.Change, l.State, l.Head, l.Edits, l.Ended = id.NewLanding(), second, "journaled", l.NewCommit, nil, nil
			if err := tx.AddLanding(ctx, l); err != nil {
				return err
			}
			p, _, err := tx.Proposal(ctx, first)
			p.Change = second
			if err == nil {
				err = tx.AddProposal(ctx, p)
			}
			return err
		})
		c, _ = h.Daemon()
		if d := h.Is(c, second, change.Finalized); !strings.Contains(d.Change.Reason, "rolled back already, by "+string(first)) {
			t.Errorf("it ended with %q", d.Change.Reason)
		}
		if d := h.Is(c, chg, change.RolledBack); d.Change.RevertedBy != first {
			t.Errorf("it says that %s rolled it back", d.Change.RevertedBy)
		}
	})
}
