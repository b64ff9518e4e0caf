package control

import (
	"context"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// Wanting says what is wanted of a person's surroundings for a new change: of the agent that is named, or else of the one
// that the repository names at the head of the branch. Errors: usage if neither names one.
func (c *Controller) Wanting(ctx context.Context, r request.Request) (live.Wanted, error) {
	if r.Agent == "" {
		if err := c.locate(ctx, &r); err != nil {
			return live.Wanted{}, err
		}
		if err := c.usual(ctx, &r); err != nil {
			return live.Wanted{}, err
		}
	}
	return c.outfits.Wanted(c.subject("", r))
}

// WantedBy says what the agent of a change wants; ref is its id or that of one of its sessions.
func (c *Controller) WantedBy(ctx context.Context, ref string) (live.Wanted, error) {
	var row change.Row
	err := c.DB.Read(ctx, func(tx store.Tx) error {
		of := id.Change(ref)
		if id.KindOf(ref) != "change" {
			s, err := tx.Session(ctx, id.Session(ref))
			if err != nil {
				return err
			}
			of = s.Change
		}
		var err error
		row, err = tx.Change(ctx, of)
		return err
	})
	if err != nil {
		return live.Wanted{}, err
	}
	return c.outfits.Wanted(c.subject(row.ID, row.Request))
}

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
		return problem.Errorf(problem.Conflict, "sallyport change show "+string(changeID), "%s is %s: its agent needs no key any more", changeID, row.State)
	}
	if err := c.outfits.Receive(c.subject(changeID, row.Request), keys); err != nil {
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
	if _, err := c.equip(changeID, row.Request); err != nil {
		return err
	}
	return c.Resume(ctx, changeID, by)
}

// forgetEnded drops what is held for a change if it has ended: nobody else would.
func (c *Controller) forgetEnded(ctx context.Context, changeID id.Change) {
	if row, err := c.Row(context.WithoutCancel(ctx), changeID); err != nil || row.State.Final() {
		c.Keys.Forget(string(changeID))
	}
}

// waitForKey blocks a change whose agent cannot work without its key: it goes on when somebody hands it over.
func (c *Controller) waitForKey(ctx context.Context, row change.Row, because error) error {
	_, err := c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		return c.Move(ctx, tx, row, ledger.Move{Event: change.Block, By: audit.Host, Blocked: change.CredentialMissing,
			Because: problem.Errorf(problem.Unavailable, "", "%s waits for the key of its agent's model: %w", row.ID, because)})
	})
	if err != nil {
		return fmt.Errorf("wait for a key: %w", err)
	}
	return nil
}

// waitsForKey reports whether a row is blocked because its agent's key is not there: then no agent of it stands anywhere.
func (c *Controller) waitsForKey(row change.Row) bool {
	return row.Blocked == change.CredentialMissing && c.watching(row.ID) == nil
}

// usual fills in the agent that the repository names at the request's head.
func (c *Controller) usual(ctx context.Context, r *request.Request) error {
	if err := r.Project.Plain(); err != nil {
		return err
	}
	host, err := c.Workspaces.Repository(ctx, r.Project, r.Head)
	if err != nil {
		return err
	}
	judging, err := c.judge.At(ctx, r.Project, host, r.Head)
	if err != nil {
		return err
	}
	if r.Agent = judging.Agent; r.Agent == "" {
		return problem.Errorf(problem.Usage, "sallyport agent list",
			"no agent is named: give one with --agent, or a COMMAND after --, or have the repository's .sallyport.yaml name one (sallyport init writes that file, which counts once you have committed it)")
	}
	return nil
}
