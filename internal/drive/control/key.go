package control

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// Wanted says what a person's surroundings are asked for before an agent can work.
type Wanted struct {
	Change id.Change // "" before there is one
	Agent  string
	Keys   []string // variables that may hold the key of its model
	Bases  []string // variables that may say that its model is elsewhere
	Env    []string // variables that the home's env: for it refers to
	Held   bool     // a key is there already, or none is needed
}

// Wanting says what is wanted of a person's surroundings for a new change: of the agent that is named, or else of the one
// that the repository names at the head of the branch. Errors: usage if neither names one.
func (c *Controller) Wanting(ctx context.Context, r request.Request) (Wanted, error) {
	if r.Agent == "" {
		if err := c.locate(ctx, &r); err != nil {
			return Wanted{}, err
		}
		if err := c.usual(ctx, &r); err != nil {
			return Wanted{}, err
		}
	}
	return c.wanted("", r)
}

// WantedBy says what the agent of a change wants; ref is its id or that of one of its sessions.
func (c *Controller) WantedBy(ctx context.Context, ref string) (Wanted, error) {
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
		return Wanted{}, err
	}
	return c.wanted(row.ID, row.Request)
}

func (c *Controller) wanted(change id.Change, r request.Request) (Wanted, error) {
	w := Wanted{Change: change, Agent: r.Agent, Held: true}
	known, named, err := c.known(r)
	if err != nil || !named {
		return w, err
	}
	choice, err := c.Agency.Chosen(r.Agent)
	if err != nil {
		return Wanted{}, err
	}
	for _, v := range choice.Settings.Env {
		if name := referred(v); name != "" && !slices.Contains(w.Env, name) {
			w.Env = append(w.Env, name)
		}
	}
	all := endpoints(known, choice, r)
	w.Held = len(all) == 0
	for _, at := range all {
		of := at.wanted(r, choice)
		if _, err := c.Keys.Has(string(change), of); err == nil {
			w.Held = true
		}
		for _, n := range of.Variables() {
			if !slices.Contains(w.Keys, n) {
				w.Keys = append(w.Keys, n)
			}
		}
		for _, n := range at.Bases {
			if choice.Settings.Base == "" && choice.Key == "" && !slices.Contains(w.Bases, n) {
				w.Bases = append(w.Bases, n)
			}
		}
	}
	return w, nil
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
	if err := c.receive(changeID, row.Request, keys); err != nil {
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

// receive holds keys for a change, those alone that its agent asks for.
func (c *Controller) receive(change id.Change, r request.Request, keys credential.Keys) error {
	if len(keys) == 0 {
		return nil
	}
	w, err := c.wanted(change, r)
	if err != nil {
		return err
	}
	for name := range keys {
		if !slices.Contains(w.Keys, name) {
			return problem.Errorf(problem.Usage, "sallyport agent list", "the agent %q asks for no key named %q", r.Agent, name)
		}
	}
	return c.Keys.Give(string(change), keys)
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
