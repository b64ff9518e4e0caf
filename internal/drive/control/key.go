package control

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/change"
	"sallyport/internal/rule/credential"
)

// Give takes keys that a person hands over for a change that is open. One that waits for its key goes on.
func (c *Controller) Give(ctx context.Context, changeID id.Change, by audit.Actor, keys credential.Keys) error {
	if err := c.Owner.MayDecide(by); err != nil {
		return err
	}
	row, err := c.Row(ctx, changeID)
	if err != nil {
		return err
	}
	if row.State.Final() {
		return problem.Errorf(problem.Conflict, "sallyport change show "+string(changeID), "%s is %s: its agent needs no key any more",
			changeID, row.State.Words())
	}
	if err := c.Receive(changeID, row.Request, keys); err != nil {
		return err
	}
	if row, err = c.Row(ctx, changeID); err != nil {
		return err
	}
	if row.State.Final() { // it ended meanwhile
		c.Keys.Forget(string(changeID))
		return nil
	}
	if !c.waitsForKey(row) {
		return nil
	}
	if _, err := c.Equip(changeID, row.Request); err != nil {
		return err
	}
	err = c.Resume(ctx, changeID, by)
	if now, e := c.Row(ctx, changeID); err != nil && e == nil && !c.waitsForKey(now) {
		return nil // its own step saw the key first
	}
	return err
}

// waitsForKey reports whether a row is blocked because its agent's key is not there: then no agent of it stands anywhere.
func (c *Controller) waitsForKey(row change.Row) bool {
	return row.Blocked == change.CredentialMissing && !c.Standing(row.ID)
}
