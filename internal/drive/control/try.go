package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/trust"
	"sallyport/internal/store"
)

// way is what a landing has to go through before it counts, known before anything moves (law 3).
type way struct {
	target   trust.Target
	length   time.Duration // how long a person has to confirm; 0 = nobody is asked
	unproven string        // of a target that is proposed and that nobody trusts
}

// none reports whether a landing counts at once.
func (w way) none() bool { return w.length == 0 && w.target.None() }

// planned returns what a landing on head goes through, judged by the words at head: those from before the change.
func (c *Controller) planned(ctx context.Context, row change.Row, l landing.Landing) (p way, err error) {
	if len(l.Edits) == 0 {
		return p, nil // nothing moves, and nothing could go back
	}
	host, err := c.Workspaces.Repository(ctx, row.Request.Project, l.Head)
	if err != nil {
		return p, err
	}
	if p.target, p.unproven, err = c.Targets.Of(ctx, host, row.Request.Project, l.Head); err != nil {
		return p, fmt.Errorf("find what runs the code of %q: %w", row.Request.Project.Top, err)
	}
	if !l.WorkTree && !p.target.None() { // it would restart other code, and prove that
		p.target, p.unproven = trust.Target{}, fmt.Sprintf("%q is not checked out in %q, so nothing is restarted or probed", l.Branch, l.Project.Top)
	}
	switch {
	case row.Request.Kind == request.Revert: // a person wants the old version: nobody is asked again
	case row.Request.Trial != nil:
		p.length = *row.Request.Trial
	default:
		p.length = p.target.Trial
	}
	return p, nil
}

// foretold says what happens on the host once a proposal has landed, by the words of now: for its card.
func (c *Controller) foretold(ctx context.Context, row change.Row, p proposal.Proposal) (then []string, err error) {
	r := row.Request
	ahead, err := c.planned(ctx, row, landing.Landing{Project: r.Project, Branch: r.Branch, WorkTree: r.CheckedOut, Head: p.Base, Edits: p.Edits})
	if err != nil {
		return nil, err
	}
	if then, err = c.beside(ctx, row); err != nil {
		return nil, err
	}
	t := ahead.target
	if t.Restart != "" {
		then = append(then, "sallyport restarts the target: "+t.Restart)
	}
	switch {
	case t.Probe.Command != "":
		then = append(then, "the target must answer: "+t.Probe.Command)
	case t.Probe.HTTP != "":
		then = append(then, "the target must answer: GET "+t.Probe.HTTP)
	}
	if ahead.unproven != "" {
		then = append(then, ahead.unproven)
	}
	if ahead.length > 0 {
		then = append(then, fmt.Sprintf("it is on trial for %s: confirm it, or sallyport rolls it back", ahead.length))
	}
	for i, line := range then {
		then[i] = c.Secrets.Redact(line)
	}
	return then, nil
}

// errLate and errDecided end what a trial waits for.
var (
	errLate    = errors.New("the time is over")
	errDecided = errors.New("it is decided")
)

// try brings what has landed to its end: kept, or taken back. Each part may run again after a crash; the row says where
// it was, and whether it is a planned restart or a crash makes no difference (SM-134).
func (c *Controller) try(ctx context.Context, row change.Row) error {
	nudged := c.listenFor(row.ID)
	defer c.listenNoMore(row.ID)
	watch := &vigil{}
	for {
		t, err := c.undecided(ctx, row)
		if err != nil {
			return err
		}
		at, err := c.Clock()
		if err != nil {
			return err
		}
		switch {
		case t.Handshake == trial.RolledBack:
			return c.takeBack(ctx, row, t)
		case t.Handshake == trial.Confirmed: // and finalized by the same transaction
			c.guard.Disarm(t.Landing)
			row, err := c.Row(ctx, row.ID)
			if err == nil {
				c.tidy(c.Lasting(), row)
			}
			return err
		case row.Request.Kind == request.Revert: // there is nothing to go back to
			err = c.comeUpHeld(ctx, row, t)
		case t.Expires.Left(at) == 0: // SM-133
			err = c.settleTrial(ctx, row, trial.TimeOut())
		case t.Handshake == trial.PendingRestart:
			c.guard.ArmTrial(t, false)
			err = c.comeUp(ctx, row, t, nudged)
		default:
			c.guard.ArmTrial(t, false)
			err = c.await(ctx, row, t, nudged, watch)
		}
		if ctx.Err() != nil {
			if c.Lasting().Err() != nil { // asked to end: the keeper goes by the deadline alone
				c.guard.ArmTrial(t, true)
			}
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, errDecided) {
			return err
		}
	}
}

// undecided returns the trial of a row that this step still holds.
func (c *Controller) undecided(ctx context.Context, row change.Row) (t trial.Trial, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		at, err := tx.Change(ctx, row.ID)
		if err != nil {
			return err
		}
		if at.Fence != row.Fence {
			return change.ErrMoved
		}
		var ok bool
		if t, ok, err = tx.Trial(ctx, row.ID); err == nil && !ok {
			err = fmt.Errorf("%s is %s without a trial", row.ID, row.State)
		}
		return err
	})
	return t, err
}

// until returns a context for what a trial waits for: it ends when somebody decides, when the time is over, and with ctx.
func (c *Controller) until(ctx context.Context, t trial.Trial, nudged <-chan struct{}) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-work.Done():
				return
			case <-nudged:
				cancel(errDecided) // or it was delivered: the row says which
			case <-tick.C:
				if at, err := c.Clock(); err != nil || t.Expires.Left(at) == 0 {
					cancel(errLate)
				}
			}
		}
	}()
	return work, func() { cancel(context.Canceled); <-done }
}

// lookEvery is how often a deadline is looked at: a machine may sleep in between, and timers do not count that.
const lookEvery = time.Second / 4

// comeUp restarts the target and waits until it answers, twice if it restarts at all (SM-917); then nobody is to be asked,
// or the person is. What does not come up goes back at once (SM-904).
func (c *Controller) comeUp(ctx context.Context, row change.Row, t trial.Trial, nudged <-chan struct{}) error {
	work, stop := c.until(ctx, t, nudged)
	defer stop()
	err := c.bringUp(work, row, &t)
	if work.Err() != nil {
		return nil // the row says why
	}
	stop()
	switch {
	case errors.Is(err, errDecided):
		return err
	case err != nil:
		return c.goBack(ctx, row, problem.Of(err).Text)
	case t.Length == 0:
		return c.keepUnasked(ctx, row, t)
	}
	return c.askToConfirm(ctx, row, t)
}

// bringUp restarts and probes as often as is wanted still, and counts in the row.
func (c *Controller) bringUp(ctx context.Context, row change.Row, t *trial.Trial) error {
	for !t.Target.None() && t.Restarts < t.RestartsWanted() {
		if err := c.startAgain(ctx, row, *t); err != nil {
			return err
		}
		next := *t
		next.Restarts++
		err := c.moveTrial(ctx, row, trial.PendingRestart, next, fmt.Sprintf("answered after restart %d", next.Restarts))
		if err != nil {
			return err
		}
		*t = next
	}
	return nil
}

// startAgain restarts the target of a trial and waits until it answers.
func (c *Controller) startAgain(ctx context.Context, row change.Row, t trial.Trial) error {
	if t.Target.Restart != "" {
		if err := c.Targets.Restart(ctx, t.Target, row.Request.Project, row.ID); err != nil {
			return err
		}
	}
	return c.Targets.Probe(ctx, t.Target, row.Request.Project)
}

// inPlace refuses to start the old version where it is not: a person may have switched to another branch since it landed, and
// what is restarted runs from the work tree.
func (c *Controller) inPlace(ctx context.Context, row change.Row) error {
	p, branch := row.Request.Project, row.Request.Branch
	site, err := c.Lander.Inspect(ctx, p, branch)
	if err == nil && !site.CheckedOut {
		err = problem.Errorf(problem.Refused, "git -C "+inert.Path(p.Top)+" switch "+inert.Path(branch), "the branch %q is not checked out in %q any more, so the old version cannot be started there", branch, p.Top)
	}
	return err
}

// moveTrial writes what the step knows, with an audit entry; errDecided if a decision came first.
func (c *Controller) moveTrial(ctx context.Context, row change.Row, from trial.Handshake, to trial.Trial, verb string) error {
	err := c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := tx.MoveTrial(ctx, from, to); err != nil {
			return err
		}
		return c.Append(ctx, tx, &change.Row{ID: row.ID}, ledger.Move{By: audit.Host, Subject: string(to.Landing)}, verb, ledger.Now())
	})
	if errors.Is(err, change.ErrMoved) {
		return fmt.Errorf("%w: %w", errDecided, err)
	}
	return err
}

// keepUnasked finalizes what answers and what nobody is to be asked about.
func (c *Controller) keepUnasked(ctx context.Context, row change.Row, t trial.Trial) error {
	reason := "the target answers, and no confirmation was asked for"
	if t.Target.None() {
		reason = "no confirmation was asked for"
	}
	return c.settleTrial(ctx, row, trial.Decision{To: trial.Confirmed, By: audit.Host, Reason: reason})
}

// goBack decides for the host that what is on trial goes back.
func (c *Controller) goBack(ctx context.Context, row change.Row, reason string) error {
	return c.settleTrial(ctx, row, trial.Decision{To: trial.RolledBack, By: audit.Host, Reason: reason})
}

// settleTrial writes the host's decision; errDecided if another came first.
func (c *Controller) settleTrial(ctx context.Context, row change.Row, d trial.Decision) error {
	at, err := c.Clock()
	if err != nil {
		return err
	}
	d.At = at.Wall
	var now change.Row
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if now, err = tx.Change(ctx, row.ID); err != nil {
			return err
		}
		t, ok, err := tx.Trial(ctx, row.ID)
		if err != nil || !ok {
			return errors.Join(err, change.ErrMoved)
		}
		return c.decideTrial(ctx, tx, &now, &t, d)
	})
	if errors.Is(err, change.ErrMoved) {
		return fmt.Errorf("%w: %w", errDecided, err)
	}
	if err == nil {
		c.Moved(now)
	}
	return err
}

// askToConfirm writes down that message 1 is out, then sends it, once (SM-121, SM-132).
func (c *Controller) askToConfirm(ctx context.Context, row change.Row, t trial.Trial) error {
	at, err := c.Clock()
	if err != nil {
		return err
	}
	t = t.Asked(at)
	c.guard.ArmTrial(t, false) // first: its deadline may be nearer now
	said := row
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if said, err = tx.Change(ctx, row.ID); err != nil {
			return err
		}
		said.Reason, said.Next = t.Question(), "sallyport confirm "+string(row.ID)
		if err := errors.Join(tx.MoveTrial(ctx, trial.PendingRestart, t), tx.MoveChange(ctx, said.State, said)); err != nil {
			return err
		}
		return c.Append(ctx, tx, &said, ledger.Move{By: audit.Host, Subject: string(t.Landing)}, "asked to confirm", ledger.Now())
	})
	if errors.Is(err, change.ErrMoved) {
		return fmt.Errorf("%w: %w", errDecided, err)
	}
	if err != nil {
		return err
	}
	c.Feed.Publish(message1(t))
	c.Notify(ledger.Note{Change: row.ID, Kind: ledger.NoteTrial, Text: t.Question(), Next: said.Next}, func() { c.heard(row.ID) })
	return nil
}

// message1 is the notice that asks whoever watches.
func message1(t trial.Trial) change.Notice {
	return change.Notice{Change: t.Change, At: ledger.Now(), Kind: "trial", State: change.InTrial, Text: t.Question()}
}

// heard writes down that message 1 was delivered, which moves the deadline the first time (SM-125).
func (c *Controller) heard(changeID id.Change) {
	ctx := c.Lasting()
	at, err := c.Clock()
	if err != nil {
		return
	}
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		t, ok, err := tx.Trial(ctx, changeID)
		if err != nil || !ok {
			return err
		}
		heard := t.Heard(at)
		if heard == t {
			return nil
		}
		if err := tx.MoveTrial(ctx, trial.Message1Sent, heard); err != nil {
			return err
		}
		return c.Append(ctx, tx, &change.Row{ID: changeID}, ledger.Move{By: audit.Host, Subject: string(t.Landing)}, "message 1 delivered", ledger.Now())
	})
	if err != nil && ctx.Err() == nil {
		c.Log.Warn("the delivery of message 1 could not be recorded, so the deadline stays", "change", changeID, "error", err)
	}
	c.nudge(changeID)
}

// vigil is what is known of a target that answered once.
type vigil struct {
	misses int
	first  deadman.Moment // of the misses in a row
}

// missesMax is how many tries in a row a target may miss.
const missesMax = 3

// miss counts a try that missed, and reports whether the target is to be taken for gone.
func (v *vigil) miss(at deadman.Moment, p trust.Probe) bool {
	if v.misses == 0 {
		v.first = at
	}
	v.misses++
	p = p.Filled()
	return v.misses >= missesMax || v.misses > 1 && at.Since(v.first) > p.Timeout+2*p.Every
}

// await waits for a person, or for the end of the time, and asks the target all the while. It returns when the row
// has to be looked at again.
func (c *Controller) await(ctx context.Context, row change.Row, t trial.Trial, nudged <-chan struct{}, v *vigil) error {
	work, stop := c.until(ctx, t, nudged)
	defer stop()
	if t.Target.Probe.None() {
		<-work.Done()
		return nil
	}
	every := min(max(t.Target.Probe.Filled().Every, askEveryMin), askEveryMax)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-work.Done():
			return nil
		case <-tick.C:
		}
		err := c.Targets.Ask(work, t.Target, row.Request.Project)
		if work.Err() != nil {
			return nil
		}
		at, clock := c.Clock()
		switch {
		case err == nil:
			*v = vigil{}
		case clock != nil:
			return clock
		case v.miss(at, t.Target.Probe):
			stop()
			return c.goBack(ctx, row, "the target answered at first, then stopped answering: "+problem.Of(err).Text)
		}
	}
}

// How often a target on trial is asked.
const (
	askEveryMin = time.Second
	askEveryMax = 5 * time.Second
)

// comeUpHeld brings the old version up after a revert has landed, as often as it takes: there is no other version to go
// back to, so one that does not answer is rollback_failed, loudly, and tried again.
func (c *Controller) comeUpHeld(ctx context.Context, row change.Row, t trial.Trial) error {
	release, err := c.guard.Hold(t.Landing)
	if err != nil {
		return err
	}
	defer release()
	if err = c.inPlace(ctx, row); err == nil {
		err = c.bringUp(ctx, row, &t)
	}
	if err == nil {
		return c.keepUnasked(ctx, row, t)
	}
	if ctx.Err() != nil || errors.Is(err, errDecided) {
		return err
	}
	release()
	c.guard.Disarm(t.Landing)
	return c.stuck(ctx, row, fmt.Errorf("sallyport restored the old files, but the old version does not answer: %w", err))
}

func (c *Controller) listenFor(change id.Change) <-chan struct{} {
	nudged := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nudges[change] = nudged
	return nudged
}

func (c *Controller) listenNoMore(change id.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.nudges, change)
}
