package drivetest

import (
	"context"
	"encoding/json"
	"errors"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/control"
	"sallyport/internal/store"
)

// Spoken is all that the database holds of a change, and what the door shows of it.
func (h *Home) Spoken(c *control.Controller, chg id.Change) string {
	h.T.Helper()
	all := []any{h.Show(c, chg)}
	h.Tx(func(ctx context.Context, tx store.Tx) error {
		row, err1 := tx.Change(ctx, chg)
		entries, err2 := tx.Entries(ctx, string(chg), 0, 0)
		approvals, err3 := tx.Approvals(ctx, false, 0)
		all = append(all, row, entries, approvals)
		return errors.Join(err1, err2, err3)
	})
	raw, err := json.Marshal(all)
	if err != nil {
		h.T.Fatal(err)
	}
	return string(raw)
}
