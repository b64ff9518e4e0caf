package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/store"
)

// What goes on trial as the host is judged by its keeper, and the keeper's record decides (SM-902): the row follows it. A step here only says to
// the keeper what it cannot see: that the old host is at rest, that message 1 has arrived, what a person has said.

// trying is the host's own trial.
type trying struct{ *Confirmer }

// record is what the keeper has of a change's trial; a change that it knows nothing of has the zero one.
func (c trying) record(of id.Change) (keeper.Record, error) {
	r, ok, err := c.Host.Record()
	if err != nil {
		return keeper.Record{}, fmt.Errorf("read what the keeper has of the trial of %s: %w", of, err)
	}
	if !ok || r.Change != string(of) {
		return keeper.Record{}, nil
	}
	return r, nil
}

// tryHost does what the host has to do in its own trial, once; the row has to be looked at again after it.
func (c trying) tryHost(ctx context.Context, row change.Row, t trial.Trial, nudged <-chan struct{}, watch *vigil) error {
	c.Guard.Disarm(t.Landing) // the keeper's record of the host has the deadline
	r, err := c.record(row.ID)
	if err != nil {
		return err
	}
	t.Expires = r.Due
	at, err := c.Clock()
	if err != nil {
		return err
	}

	switch {
	case r.Step == "":
		return c.settleTrial(ctx, row, trial.Decision{To: trial.RolledBack, By: audit.Host, Reason: "the keeper's record of its trial is gone"})
	case r.Step == keeper.Armed:
		return c.handOver(ctx, row, nudged)
	case r.Step == keeper.Confirmed:
		return c.settleTrial(ctx, row, trial.Decision{To: trial.Confirmed, By: sayer(r)})
	case r.Step != keeper.Ready && r.Step != keeper.Asked, r.Due.Left(at) == 0:
		return c.pass(ctx, nudged) // the keeper moves next
	case t.Handshake == trial.PendingRestart:
		return c.comeUp(ctx, row, t, nudged)
	case t.Delivered != nil && r.Step == keeper.Ready:
		return c.Host.Asked(ctx, row.ID)
	}
	return c.await(ctx, row, t, nudged, watch)
}

// whyMax bounds what is told of why the host goes back, in bytes.
const whyMax = 500

// WentBack is why the host goes back by its keeper's record, as the row of the trial says it.
func WentBack(r keeper.Record) trial.Decision {
	if r.Why == keeper.Unconfirmed {
		return trial.TimeOut()
	}
	return trial.Decision{To: trial.RolledBack, By: sayer(r), Reason: inert.Short(r.Why, whyMax)}
}

// sayer is who confirmed or rolled back, as the keeper was told by the host on trial. That may have said anything, and what no row takes would
// keep the old host away: then it was the host.
func sayer(r keeper.Record) audit.Actor {
	var by audit.Actor
	if err := json.Unmarshal(r.By, &by); err != nil || by.Kind != "person" || by.Name == "" {
		return audit.Host
	}
	return by
}

// pass waits a moment for the keeper to move.
func (c trying) pass(ctx context.Context, nudged <-chan struct{}) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-nudged:
	case <-timer.C:
	}
	return nil
}

// handOver has the new host started in the place of this one. What keeps this one from handing over ends the trial: the files go back, and
// nothing was restarted.
func (c trying) handOver(ctx context.Context, row change.Row, nudged <-chan struct{}) error {
	err := c.DB.Read(ctx, func(tx store.Tx) error { return ledger.NoneOnTrial(ctx, tx, row) })
	if errors.Is(err, ledger.ErrOnTrial) { // it landed in the same moment, and nothing else does any more
		return c.pass(ctx, nudged)
	}
	if err == nil {
		err = c.Host.HandOver(ctx, row.ID)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, keeper.ErrSilent): // its record says whether it has taken over
		return err
	case err != nil:
		return c.settleTrial(ctx, row, trial.Decision{To: trial.RolledBack, By: audit.Host, Reason: "the host could not hand over: " + problem.Of(err).Text})
	}
	<-ctx.Done() // this daemon is about to end
	return nil
}

// goBackHost has the keeper bring the old host back, which ends this one.
func (c trying) goBackHost(ctx context.Context, row change.Row, reason string) error {
	if err := c.Host.RollBack(ctx, row.ID, reason, audit.Host); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// answerHost takes a person's answer to the trial of the host. The keeper hears it first, and what it has written down decides: of a host
// that dies right after that the next one finds it there. It reports false where the answer is the row's alone.
func (c trying) answerHost(ctx context.Context, row change.Row, t trial.Trial, to trial.Handshake, by audit.Actor, reason,
	code string) (heard bool, err error) {
	show := "sallyport change show " + string(row.ID)
	r, err := c.record(row.ID)
	switch {
	case err != nil:
		return false, err
	case r.Step == keeper.Back:
		return true, problem.Errorf(problem.Conflict, show, "sallyport brings the old host back already: %s", r.Why)
	case to == trial.RolledBack && (r.Step == "" || r.Step == keeper.Armed):
		return false, nil // nothing was handed over
	case to == trial.RolledBack:
		return true, c.Host.RollBack(ctx, row.ID, reason, by)
	case r.Step == keeper.Confirmed:
		return false, nil
	case t.Handshake == trial.PendingRestart || r.Step != keeper.Ready && r.Step != keeper.Asked:
		return true, problem.Errorf(problem.Conflict, "sallyport change watch "+string(row.ID),
			"%s cannot be confirmed yet: the host is being restarted and has not answered", row.ID)
	case code == "":
		return true, problem.Errorf(problem.Usage, "sallyport confirm "+string(row.ID)+" --code CODE",
			"a trial of the host is confirmed with the code that whoever approved %s was given", row.ID)
	}
	return false, c.Host.Confirm(ctx, row.ID, code, by)
}

// TakeHostBack is what the old host's program does before it serves again (SM-905): it writes down that what is on trial goes back, and why,
// and has the old files back. What cannot go back is rollback_failed, and tried again by the host that then runs.
func (c *Confirmer) TakeHostBack(ctx context.Context, row change.Row, d trial.Decision) error {
	t, err := c.readUndecided(ctx, row)
	if err != nil {
		return err
	}
	if !t.Handshake.Decided() {
		if err := c.settleTrial(ctx, row, d); err != nil && !errors.Is(err, errDecided) {
			return err
		}
		if t, err = c.readUndecided(ctx, row); err != nil {
			return err
		}
	}
	return c.takeBack(ctx, row, t)
}

// disarmHost has the keeper let go of a trial that was not handed over.
func (c trying) disarmHost(row change.Row, t trial.Trial) error {
	if !t.Target.Host {
		return nil
	}
	r, err := c.record(row.ID)
	if err != nil || r.Step != keeper.Armed {
		return err
	}
	return c.Host.Disarm(row.ID)
}

// foretellHost says on a card what becomes of the host once a change of it has landed.
func (c trying) foretellHost(p proposal.Proposal) []string {
	then := []string{"sallyport hands over to its keeper, which starts it again twice, and it must answer"}
	if h := p.Card.Host; h != nil && h.Quiet() {
		then = append(then, fmt.Sprintf("the database goes from schema %d to %d: while it is on trial only the conversation that asked for it goes on", h.Was, h.Schema))
	}
	if err := c.Host.Judges(); err != nil {
		then = append(then, "it does not land as things are: "+problem.Of(err).Text)
	}
	return then
}

// isHost reports whether the target of a change is the host itself: something that its group asked for lies outside of that group's folder, or
// another release is to run. What undoes such a change restarts nothing: nobody has a code for it, and it has been there before.
func isHost(r request.Request, others bool, release string) bool {
	return release != "" || r.Kind == request.Swap && !r.Refresh && others
}

// rowAndTrial reads what somebody answers to.
func (c trying) rowAndTrial(ctx context.Context, of id.Change, by audit.Actor) (row change.Row, t trial.Trial, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		if row, err = tx.Change(ctx, of); err != nil {
			return err
		}
		if err := c.mayEnd(ctx, tx, row, by); err != nil {
			return err
		}
		t, _, err = tx.Trial(ctx, of)
		return err
	})
	return row, t, err
}
