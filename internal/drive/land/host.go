package land

import (
	"context"
	"fmt"

	"sallyport/internal/drive/guard"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
)

// slack is how many times what its rehearsal took the database of a new host may take, beyond what a host has to be ready.
const slack = 2

// armHost makes sure, before the files of a change of the host move, that its keeper can bring the old host back, and that somebody has what
// it is confirmed with. What is on trial already comes to its end first: a host that goes by another schema does not see to it.
func (ls *Landings) armHost(ctx context.Context, row change.Row, p proposal.Proposal, ahead trial.Terms) error {
	if !ahead.Target.Host {
		return nil
	}
	code, err := ls.Host.Code(ctx, row.ID)
	if err != nil {
		return err
	}
	if err := ls.DB.Read(ctx, func(tx store.Tx) error { return ledger.NoneOnTrial(ctx, tx, row) }); err != nil {
		return err
	}

	c := guard.HostChange{Change: row.ID, Code: code, Release: ahead.Target.Release}
	if h := p.Card.Host; h != nil {
		c.Slack = slack * h.Migration
	}
	if err := ls.Host.Arm(ctx, c); err != nil {
		ls.disarmHost(ctx, row, ahead) // what was made of it until then would stay, on a disk that may be full
		return fmt.Errorf("make sure of the way back of the host: %w", err)
	}
	return nil
}

// disarmHost lets go of a way back that nothing needs: the landing did not begin, or was undone.
func (ls *Landings) disarmHost(ctx context.Context, row change.Row, ahead trial.Terms) {
	if !ahead.Target.Host {
		return
	}
	ctx = context.WithoutCancel(ctx)
	now, err := ls.Row(ctx, row.ID)
	l, open, lerr := ls.Landing(ctx, row.ID)
	if err != nil || lerr != nil || now.State == change.InTrial || open && l.Unfinished() {
		return
	}
	if err := ls.Host.Disarm(row.ID); err != nil {
		ls.Log.Warn("the keeper stays armed for a change of the host that did not land; the next start disarms it", "change", row.ID, "error", err)
	}
}
