package accept

import (
	"context"
	"errors"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/live"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/credential"
	"sallyport/internal/store"
)

// subject is a request as sandboxes know it, before any rules were read.
func (rs *Requests) subject(change id.Change, r request.Request) live.Subject {
	return work.Subject(change, r, rs.Opener.Self)
}

// Equip gathers what an agent is given for a request.
func (rs *Requests) Equip(change id.Change, r request.Request) (live.Outfit, error) {
	return rs.Outfits.Equip(rs.subject(change, r), work.Task(r))
}

// Receive holds keys for a change, those alone that its agent asks for.
func (rs *Requests) Receive(change id.Change, r request.Request, keys credential.Keys) error {
	return rs.Outfits.Receive(rs.subject(change, r), keys)
}

// Runnable resolves the agent and its key now, so that a missing one is said before anything is copied; again is the command that asks
// for it again. It reports whether a key goes with it.
func (rs *Requests) Runnable(change id.Change, r request.Request, again string) (keyed bool, err error) {
	e, err := rs.Equip(change, r)
	if errors.Is(err, credential.ErrMissing) { // what is not installed is said first: a key for it is of no use
		if _, missing := e.Program(); missing != nil {
			return false, missing
		}
		if e.Login != nil { // it names the command that logs in
			return false, err
		}
		return false, problem.Errorf(problem.Unavailable, live.Handing(again, e.Wanted), "%w", err)
	}
	if err == nil {
		err = rs.startable(e, r)
	}
	return !e.Key.Empty(), err
}

// startable looks at the agent's program, and at whether what its model uses can be counted.
func (rs *Requests) startable(e live.Outfit, r request.Request) error {
	p, err := e.Program()
	if err != nil || p.Model == nil {
		return err
	}
	return live.Countable(r.Agent, p.Model, rs.Budget.Price(r.Agent), rs.Outfits.Agency.Budgets())
}

// ForgetEnded drops what is held for a change if it has ended: nobody else would.
func (rs *Requests) ForgetEnded(ctx context.Context, changeID id.Change) {
	if row, err := rs.Row(context.WithoutCancel(ctx), changeID); err != nil || row.State.Final() {
		rs.Outfits.Keys.Forget(string(changeID))
	}
}

// Wanting says what is wanted of a person's surroundings for a new change: of the agent that is named, or else of the one
// that the repository names at the head of the branch. Errors: usage if neither names one.
func (rs *Requests) Wanting(ctx context.Context, r request.Request) (live.Wanted, error) {
	if r.Agent == "" {
		if err := rs.locate(ctx, &r); err != nil {
			return live.Wanted{}, err
		}
		if err := rs.usual(ctx, &r); err != nil {
			return live.Wanted{}, err
		}
	}
	return rs.Outfits.Wanted(rs.subject("", r))
}

// WantedBy says what the agent of a change wants; ref is its id or that of one of its sessions.
func (rs *Requests) WantedBy(ctx context.Context, ref string) (live.Wanted, error) {
	var row change.Row
	err := rs.DB.Read(ctx, func(tx store.Tx) error {
		if id.KindOf(ref) == "change" {
			var err error
			row, err = tx.Change(ctx, id.Change(ref))
			return err
		}
		s, err := tx.Session(ctx, id.Session(ref))
		if err == nil {
			row, err = ledger.ChangeOf(ctx, tx, s)
		}
		return err
	})
	if err != nil {
		return live.Wanted{}, err
	}
	return rs.Outfits.Wanted(rs.subject(row.ID, row.Request))
}
