package drivetest

import (
	"context"
	"testing/synctest"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/base/id"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/control"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/store"
)

// Yes approves what a change waits with.
func (h *Home) Yes(c *control.Controller, chg id.Change) {
	h.T.Helper()
	yes(h, c, chg, h.By())
}

// yes is somebody's yes to what a change waits with.
func yes(h *Home, c *control.Controller, chg id.Change, by audit.Actor) {
	h.T.Helper()
	d := h.Is(c, chg, change.AwaitingApproval)
	if err := c.Approve(gittest.Context(h.T), d.Approval.ID, d.Proposal.Digest, by, approve.Words{Via: "command line"}); err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
}

// Landed is a daemon that has landed one change.
func (h *Home) Landed() (c *control.Controller, end func(), chg id.Change) {
	h.T.Helper()
	h.Cage.Play = Writes("two\n")
	c, end = h.Daemon()
	chg = h.Ask(c)
	h.Yes(c, chg)
	return c, end, chg
}

// Undo asks for the rollback of a change.
func (h *Home) Undo(c *control.Controller, chg id.Change, mode request.Approve) id.Change {
	h.T.Helper()
	row, err := c.Rollback(gittest.Context(h.T), chg, h.By(), "", mode)
	if err != nil {
		h.T.Fatal(err)
	}
	synctest.Wait()
	return row.ID
}

// Twin stores the request of a rollback once more, as an earlier sallyport let a person do, and starts another daemon.
func (h *Home) Twin(end func(), of id.Change) (twin id.Change, c *control.Controller, ended func()) {
	h.T.Helper()
	end()
	twin = id.NewChange()
	h.Tx(func(ctx context.Context, tx store.Tx) error {
		row, err := tx.Change(ctx, of)
		if err != nil {
			return err
		}
		row.ID, row.State, row.Base, row.Fence, row.Due = twin, change.Requested, "", 0, time.Now()
		return tx.AddChange(ctx, row)
	})
	c, ended = h.Daemon()
	synctest.Wait()
	return twin, c, ended
}
