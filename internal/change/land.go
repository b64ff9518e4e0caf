package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/checkpoint"
	"sallyport/internal/git"
	"sallyport/internal/id"
	"sallyport/internal/landing"
	"sallyport/internal/lock"
	"sallyport/internal/problem"
	"sallyport/internal/proposal"
	"sallyport/internal/request"
	"sallyport/internal/store"
	"sallyport/internal/trial"
)

// land makes what was approved true, or leaves everything as it was and says why.
//
// It starts from the journal: a row that an earlier try left open is finished or undone
// first. Then the rules are read again: an approval given under other rules is void (SM-907).
func (c *Controller) land(ctx context.Context, row store.Change) error {
	ctx = context.WithoutCancel(ctx) // a landing is not stopped in the middle
	lease, err := c.takeRepository(ctx, row)
	if err != nil {
		return err
	}
	defer c.dropRepository(ctx, lease)
	p, err := c.proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("%s is to be landed without a proposal", row.ID)
	}
	open, ok, err := c.landing(ctx, row.ID)
	if err != nil {
		return err
	}
	unfinished := ok && (open.State == landing.Journaled || open.State == landing.Stranded)
	if err := row.Request.Project.Plain(); err != nil {
		if unfinished {
			return problem.Errorf(problem.Unavailable, "", "%s cannot be brought to its end: %w", open.ID, err) // it is tried again
		}
		return c.held(ctx, row, *p, err)
	}
	if unfinished {
		ahead, err := c.planned(ctx, row, open)
		if err != nil {
			return err
		}
		return c.carryOut(ctx, row, *p, open, c.Lander.Recover, ahead)
	}
	if ok && open.State == landing.Landed {
		return fmt.Errorf("%s has landed as %s already", row.ID, open.ID) // the close and the move are one transaction
	}
	head, same, err := c.sameRules(ctx, row, *p)
	if err != nil {
		return err
	}
	if !same {
		return c.askAgain(ctx, row, *p, head)
	}
	if err := c.loadable(ctx, row, *p); err != nil {
		return c.held(ctx, row, *p, err)
	}
	order, err := c.order(ctx, row, *p)
	if err != nil {
		return err
	}
	// Another home, or a person, may commit on other paths between computing and the lock.
	for range staleMax {
		var computed landing.Landing
		if computed, err = c.Lander.Compute(ctx, order); err != nil {
			break
		}
		var ahead way
		if ahead, err = c.planned(ctx, row, computed); err != nil {
			break
		}
		if err = c.carryOut(ctx, row, *p, computed, c.Lander.Land, ahead); !errors.Is(err, landing.ErrStale) {
			return err
		}
	}
	return c.held(ctx, row, *p, err)
}

// staleMax is how often a landing is computed anew because the branch moved meanwhile.
const staleMax = 5

// carryOut runs a computed landing under the guard, or with Recover finishes or undoes one that a crash left
// open. What goes on trial stays armed.
func (c *Controller) carryOut(ctx context.Context, row store.Change, p proposal.Proposal, l landing.Landing,
	carry func(context.Context, landing.Landing, landing.Steps) (landing.Landing, error), ahead way) error {
	release, err := c.hold(l.ID)
	if err != nil {
		return err
	}
	closed, err := carry(ctx, l, c.journal(ctx, &row, p, ahead))
	release()
	if State(row.State) != InTrial { // the journal has moved it
		c.disarm(l.ID)
	}
	return c.outcome(ctx, row, p, closed, err)
}

// journal writes the landing's own row. Closing it moves the change in the same transaction,
// so that the row tells the truth at every instant.
func (c *Controller) journal(ctx context.Context, row *store.Change, p proposal.Proposal, ahead way) landing.Steps {
	return landing.Steps{
		Journal: func(l landing.Landing) error {
			return c.DB.InTx(ctx, func(tx store.Tx) error {
				if err := tx.AddLanding(ctx, l); err != nil {
					return err
				}
				return c.append(ctx, tx, &store.Change{ID: row.ID}, Move{By: audit.Host, Subject: string(l.ID), Digests: map[string]string{"head": string(l.Head), "tree": string(l.NewTree), "commit": string(l.NewCommit)}}, "began landing", l.Started)
			})
		},
		Close: func(l landing.Landing) error {
			begins, err := c.Clock()
			if err != nil {
				return err
			}
			at := *row
			err = c.DB.InTx(ctx, func(tx store.Tx) error {
				at = *row
				if err := tx.CloseLanding(ctx, l); err != nil {
					return err
				}
				if l.State == landing.Landed && !ahead.none() {
					return c.onTrial(ctx, tx, &at, trial.Begin(row.ID, l.ID, ahead.target, ahead.length, begins), l, ahead.unproven)
				}
				return c.closed(ctx, tx, &at, p, l, ahead.unproven)
			})
			if err == nil {
				*row = at
			}
			return err
		},
	}
}

// onTrial begins the trial of what has landed, in the transaction that closes the landing: the deadman runs from here.
// If nothing will be restarted, it says so, and why: what asks to confirm speaks of a new version that is back.
func (c *Controller) onTrial(ctx context.Context, tx store.Tx, row *store.Change, t trial.Trial, l landing.Landing, unproven string) error {
	if err := tx.AddTrial(ctx, t); err != nil {
		return err
	}
	if t.Target.None() && unproven == "" {
		unproven = "it has no target, so nothing is restarted or probed"
	}
	return c.move(ctx, tx, row, Move{
		Event: Tried, By: audit.Host, Subject: string(l.ID), Reason: strings.TrimSuffix(strings.TrimPrefix(l.Reason+"; "+unproven, "; "), "; "), Next: "sallyport rollback " + string(row.ID),
		Digests: map[string]string{"commit": string(l.NewCommit), "tree": string(l.NewTree), "target": t.Digest},
	})
}

// closed moves a change by what became of its landing; unproven says what of the repository's did not count.
func (c *Controller) closed(ctx context.Context, tx store.Tx, row *store.Change, p proposal.Proposal, l landing.Landing, unproven string) error {
	m := Move{By: audit.Host, Subject: string(l.ID), Reason: l.Reason}
	switch l.State {
	case landing.Landed: // a plain repository has nothing to restart: its trial is 0
		m.Event = Landed
		m.Reason = strings.TrimPrefix(l.Reason+"; "+unproven, "; ")
		m.Reason = strings.TrimSuffix(m.Reason, "; ")
		return c.kept(ctx, tx, row, l, m)
	case landing.Undone:
		m.Event = Undone
		m.Because = problem.Errorf(problem.Refused, "sallyport approve "+string(row.ID), "the landing was taken back: %s", l.Reason)
		if err := c.move(ctx, tx, row, m); err != nil {
			return err
		}
		return c.reopen(ctx, tx, p, m.Because)
	case landing.Stranded:
		if State(row.State) == RollbackFailed {
			return nil
		}
		m.Event = Stuck
		m.Because = problem.Errorf(problem.Internal, "sallyport change show "+string(row.ID), "the landing could be neither finished nor taken back: %s", l.Reason)
		return c.move(ctx, tx, row, m)
	}
	return fmt.Errorf("landing %s is closed as %s", l.ID, l.State)
}

// outcome tells of a landing whose row was closed, or decides what its error means.
func (c *Controller) outcome(ctx context.Context, row store.Change, p proposal.Proposal, l landing.Landing, err error) error {
	if errors.Is(err, landing.ErrStale) {
		return err // nothing began
	}
	if err != nil {
		if l.State == "" || l.State == landing.Journaled {
			if open, ok, e := c.landing(ctx, row.ID); e == nil && (!ok || open.State != landing.Journaled) {
				return c.held(ctx, row, p, err) // it never began
			}
		}
		return err // the row is open: it is due again and recovered
	}
	fresh, err := c.row(ctx, row.ID)
	if err != nil {
		return err
	}
	c.moved(fresh)
	if State(fresh.State) == Finalized {
		c.tidy(c.lasting(), fresh)
	}
	if State(fresh.State) == RollbackFailed {
		return problem.Errorf(problem.Internal, "sallyport change show "+string(row.ID), "%s", l.Reason)
	}
	return nil
}

// held brings a change whose landing did not begin back to the person, with the reason and a new
// approval of the same proposal. What the machine is to blame for is tried again by itself.
func (c *Controller) held(ctx context.Context, row store.Change, p proposal.Proposal, because error) error {
	if errors.Is(because, landing.ErrBusy) && (!errors.Is(because, landing.ErrLocked) || row.Attempts+1 < attemptsMax) {
		return because // a landing of ours comes to its end; a lock that anybody can take may not
	}
	if transient(because) && row.Attempts+1 < attemptsMax {
		return because
	}
	because = c.wayOn(ctx, row, because)
	_, err := c.inTx(ctx, row, func(tx store.Tx, row *store.Change) error {
		next := problem.Of(because).Next
		if next == "" {
			next = "sallyport approve " + string(row.ID)
		}
		if err := c.move(ctx, tx, row, Move{Event: Held, By: audit.Host, Verb: "landing refused", Because: because, Next: next}); err != nil {
			return err
		}
		return c.reopen(ctx, tx, p, because)
	})
	return err
}

// reopen asks about the same tree again, on a card that says why it did not land (SM-110, SM-162).
func (c *Controller) reopen(ctx context.Context, tx store.Tx, p proposal.Proposal, because error) error {
	p.Number, p.At = p.Number+1, now()
	p.Card.Note, p.Card.Drift = c.Secrets.Redact(problem.Of(because).Text), nil
	if errors.Is(because, landing.ErrDrift) {
		p.Card.Drift = []string{p.Card.Note}
	}
	if err := tx.AddProposal(ctx, p); err != nil {
		return err
	}
	_, err := approval.Open(ctx, tx, id.NewApproval(), p, p.At)
	return err
}

// askAgain judges the same tree by the rules as they are now, checks included, and asks about it anew.
func (c *Controller) askAgain(ctx context.Context, row store.Change, p proposal.Proposal, head git.OID) error {
	o, err := c.offered(ctx, row, head)
	if err != nil {
		return err
	}
	o.note = "the rules have changed since it was approved"
	if row.Request.Kind == request.Edit {
		violations, err := checkpoint.Judge(ctx, o.host, o.base, o.commit, plan(row.Request), o.judging.Rules, o.judging.Secrets, c.Rules.Load)
		if err != nil {
			return err
		}
		if len(violations) > 0 {
			return c.held(ctx, row, p, refusal(row.ID, violations))
		}
	}
	results, why, err := c.check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return c.held(ctx, row, p, why)
	}
	return c.ask(ctx, row, o, results, Asked)
}

// sameRules returns the branch's head and whether the rules there are the ones the approval names.
func (c *Controller) sameRules(ctx context.Context, row store.Change, p proposal.Proposal) (head git.OID, same bool, err error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
		return "", false, err
	}
	head, err = row.Request.Project.Common(c.Ops).Resolve(ctx, "refs/heads/"+row.Request.Branch+"^{commit}")
	if err != nil || head == "" {
		return "", err == nil, err // a branch that is gone is Compute's to name
	}
	judging, err := c.judges(ctx, row, host, head)
	if err != nil {
		return "", false, err
	}
	return head, judging.digest(row.Request) == p.Policy, nil
}

// loadable refuses to land rules that cannot be read afterwards: neither the next change nor its checks could begin. A path lands
// whole or not at all, so what stands in the approved commit is what would be read. What goes back has been there before.
func (c *Controller) loadable(ctx context.Context, row store.Change, p proposal.Proposal) error {
	if row.Request.Kind == request.Revert {
		return nil
	}
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
		return err
	}
	violations, err := c.Rules.Load(ctx, host, p.Commit, p.Edits)
	if err == nil && len(violations) > 0 {
		err = refusal(row.ID, violations)
	}
	return err
}

// order says what is to be landed, from the approved proposal alone.
func (c *Controller) order(ctx context.Context, row store.Change, p proposal.Proposal) (landing.Order, error) {
	var yes approval.Approval
	err := c.DB.Read(ctx, func(tx store.Tx) (err error) {
		yes, err = tx.LatestApproval(ctx, row.ID)
		return err
	})
	if err != nil {
		return landing.Order{}, err
	}
	if yes.Decision != approval.Approved || yes.Digest != p.Digest || yes.By == nil {
		return landing.Order{}, fmt.Errorf("%s is to be landed without an approval of %.12s", row.ID, p.Digest)
	}
	r := row.Request
	author := c.Settings.Author
	author.At = *yes.At
	return landing.Order{
		Landing: id.NewLanding(), Change: row.ID, Project: r.Project, Branch: r.Branch, WorkTree: r.CheckedOut,
		Base: p.Base, Edits: p.Edits, Source: p.Commit, Author: author, Committer: author,
		Message: message(row, yes),
	}, nil
}

// message is the landing commit's (SM-103, SM-139).
func message(row store.Change, yes approval.Approval) string {
	m := landing.Message{Change: row.ID, Verb: "swap", Summary: firstLine(row.Request.Text), Body: row.Request.Text, Approver: yes.By.Name, Agent: row.Request.Agent}
	if row.Request.Kind == request.Revert {
		m.Verb, m.Subject, m.Summary, m.Body = "rollback", row.Request.Reverts, row.Request.Reason, ""
	}
	return m.String()
}

// errOnTrial holds back what would land beside an open trial.
var errOnTrial = problem.New(problem.Unavailable, "another change is on trial in this repository")

// free refuses while another change is on trial in the repository of row (SM-916).
func (c *Controller) free(ctx context.Context, tx store.Tx, row store.Change) error {
	open, err := tx.OpenTrials(ctx)
	if err != nil {
		return err
	}
	for _, t := range open {
		other, err := tx.Change(ctx, t.Change)
		if err != nil {
			return err
		}
		if other.ID != row.ID && State(other.State) == InTrial && other.Request.Project.CommonDir == row.Request.Project.CommonDir {
			return problem.Errorf(problem.Unavailable, "sallyport change show "+string(other.ID), "it waits for the trial of %s: %w", other.ID, errOnTrial)
		}
	}
	return nil
}

// takeRepository takes the lease on the repository; landings on one go one at a time, and none beside a trial (SM-916).
func (c *Controller) takeRepository(ctx context.Context, row store.Change) (lease lock.Lease, err error) {
	key := "repo:" + row.Request.Project.CommonDir
	ok := false
	err = c.DB.InTx(ctx, func(tx store.Tx) error {
		if err := c.free(ctx, tx, row); err != nil {
			return err
		}
		if lease, ok, err = tx.TakeLease(ctx, key, string(row.ID), now(), leaseTTL); err != nil || ok {
			return err
		}
		// A daemon that died may have had no time to give it back.
		holder, err := tx.Change(ctx, id.Change(lease.Holder))
		if err != nil || State(holder.State) == Landing || State(holder.State) == InTrial || State(holder.State) == RollbackFailed {
			return err
		}
		if err := tx.DropLease(ctx, lease); err != nil {
			return err
		}
		lease, ok, err = tx.TakeLease(ctx, key, string(row.ID), now(), leaseTTL)
		return err
	})
	if err == nil && !ok {
		err = fmt.Errorf("%s is landing on %s: %w", lease.Holder, git.Project(row.Request.Project).Top, landing.ErrBusy)
	}
	return lease, err
}

func (c *Controller) dropRepository(ctx context.Context, lease lock.Lease) {
	if err := c.DB.InTx(ctx, func(tx store.Tx) error { return tx.DropLease(ctx, lease) }); err != nil {
		c.Log.Warn("a lease was not given back; it ends by itself", "lease", lease.Key, "error", err)
	}
}

// landing returns a change's latest journal row.
func (c *Controller) landing(ctx context.Context, change id.Change) (l landing.Landing, ok bool, err error) {
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		l, ok, err = tx.LandingOf(ctx, change)
		return err
	})
	return l, ok, err
}

// landingNamed returns the journal row that another row names.
func landingNamed(ctx context.Context, tx store.Tx, name id.Landing) (landing.Landing, error) {
	l, ok, err := tx.Landing(ctx, name)
	if err == nil && !ok {
		err = fmt.Errorf("there is no landing %s", name)
	}
	return l, err
}
