package control_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// yes approves what a change waits with.
func (h *home) yes(c *control.Controller, chg id.Change) {
	h.t.Helper()
	d := h.is(c, chg, change.AwaitingApproval)
	if err := c.Approve(h.t.Context(), d.Approval.ID, d.Proposal.Digest, h.by(), approve.Words{Via: "command line"}); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
}

// landed is a daemon that has landed one change.
func (h *home) landed() (c *control.Controller, end func(), chg id.Change) {
	h.t.Helper()
	h.cage.play = writes("two\n")
	c, end = h.daemon()
	chg = h.ask(c)
	h.yes(c, chg)
	return c, end, chg
}

// undo asks for the rollback of a change.
func (h *home) undo(c *control.Controller, chg id.Change, mode request.Approve) id.Change {
	h.t.Helper()
	row, err := c.Rollback(h.t.Context(), chg, h.by(), "", mode)
	if err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
	return row.ID
}

// twin stores the request of a rollback once more, as an earlier sallyport let a person do, and starts another daemon.
func (h *home) twin(end func(), of id.Change) (twin id.Change, c *control.Controller, ended func()) {
	h.t.Helper()
	end()
	twin = id.NewChange()
	h.tx(func(ctx context.Context, tx store.Tx) error {
		row, err := tx.Change(ctx, of)
		if err != nil {
			return err
		}
		row.ID, row.State, row.Base, row.Fence, row.Due = twin, change.Requested, "", 0, time.Now()
		return tx.AddChange(ctx, row)
	})
	c, ended = h.daemon()
	synctest.Wait()
	return twin, c, ended
}

func TestASecondRollbackOfWhatIsBeingRolledBackIsRefusedAndNamesTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, _, chg := h.landed()
		first := h.undo(c, chg, request.Later)
		_, err := c.Rollback(t.Context(), chg, h.by(), "", request.Yes)
		if p := problem.Of(err); err == nil || p.Kind != problem.Conflict || p.Next != "sallyport approve "+string(first) || !strings.Contains(p.Text, string(first)) {
			t.Fatalf("the second rollback: %v", err)
		}
		h.yes(c, first)
		h.is(c, first, change.Finalized)
		if _, err := c.Rollback(t.Context(), chg, h.by(), "", request.Yes); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "was rolled back already, by "+string(first)) {
			t.Errorf("a rollback of what is rolled back: %v", err)
		}
	})
}

// A rollback can be asked for while the first one waits only by an earlier sallyport's database.
func TestOfTwoRollbacksOneIsDoneAndTheOtherEndsWithAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, end, chg := h.landed()
		first := h.undo(c, chg, request.Later)
		second, c, _ := h.twin(end, first)
		h.is(c, second, change.AwaitingApproval)
		h.yes(c, second)
		h.is(c, second, change.Finalized)
		d := h.is(c, first, change.Cancelled)
		if want := string(chg) + " was rolled back already, by " + string(second); d.Change.Reason != want || d.Change.Next != "sallyport change show "+string(second) {
			t.Errorf("it ended with %q, next %q; want %q", d.Change.Reason, d.Change.Next, want)
		}
		if all, err := c.Approvals(t.Context(), true); err != nil || len(all) > 0 {
			t.Errorf("still asked of a person: %v, %v", all, err)
		}
	})
}

// As an earlier sallyport left it: approved, and landing, when the other had landed already.
func TestARollbackOfWhatIsRolledBackEndsWhereverItStands(t *testing.T) {
	bubble(t, func(t *testing.T, h *home) {
		c, end, chg := h.landed()
		first := h.undo(c, chg, request.Later)
		h.yes(c, first)
		h.is(c, first, change.Finalized)
		second, c, end := h.twin(end, first)
		if d := h.is(c, second, change.Cancelled); !strings.Contains(d.Change.Reason, "rolled back already, by "+string(first)) {
			t.Errorf("it ended with %q", d.Change.Reason)
		}
		end()
		h.tx(func(ctx context.Context, tx store.Tx) error {
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
		c, _ = h.daemon()
		if d := h.is(c, second, change.Finalized); !strings.Contains(d.Change.Reason, "rolled back already, by "+string(first)) {
			t.Errorf("it ended with %q", d.Change.Reason)
		}
		if d := h.is(c, chg, change.RolledBack); d.Change.RevertedBy != first {
			t.Errorf("it says that %s rolled it back", d.Change.RevertedBy)
		}
	})
}
