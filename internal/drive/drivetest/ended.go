package drivetest

import (
	"sallyport/internal/base/git/gittest"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/view"
	"sallyport/internal/path/change"
)

// Refused brings a change to its end with a checkpoint that did not land.
func (h *Home) Refused(c *control.Controller) view.Detail {
	h.T.Helper()
	h.Cage.Play = Writes("two\n")
	chg := h.Ask(c)
	d := h.Is(c, chg, change.AwaitingApproval)
	if n, err := c.ForgetRefs(gittest.Context(h.T), chg, h.By()); n != 0 || err != nil {
		h.T.Errorf("%d refs of an open change were removed: %v", n, err)
	}
	if err := c.Refuse(gittest.Context(h.T), d.Approval.ID, h.By(), "no"); err != nil {
		h.T.Fatal(err)
	}
	return h.Is(c, chg, change.Rejected)
}
