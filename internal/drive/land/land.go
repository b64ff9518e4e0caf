package land

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/landing"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/trial"
	"sallyport/internal/rule/secret"
	"sallyport/internal/store"
)

// Land lands what is approved, once what results was looked at: where the branch has moved since, the marks are computed and
// the checks run first on the tree that would land (SECURITY rule 13). Where the rules have moved with the branch, a person is
// asked anew. Both may take minutes, so neither holds a lock or the repository's lease.
func (ls *Landings) Land(ctx context.Context, row change.Row) error {
	var err error
	for range staleMax {
		err = ls.landChecked(ctx, row)
		var first *unchecked
		var others *otherRules
		switch {
		case errors.As(err, &first):
			if err := ls.judgeResult(ctx, row, first); err != nil {
				return err
			}
		case errors.As(err, &others):
			return ls.askAgain(ctx, row, others.head)
		default:
			return err
		}
	}
	return problem.Errorf(problem.Refused, "sallyport approve "+string(row.ID),
		"the branch %s moves faster than the checks of %s run: %w; approve again once it rests", row.Request.Branch, row.ID, err)
}

// landChecked makes what was approved true, or leaves everything as it was and says why: an error before the journal is
// answered by Settle, and ctx ends what is not in the journal yet. *unchecked says what has to be looked at first, and
// *otherRules that a person has to be asked anew; both are done once the repository's lease is given back.
//
// It starts from the journal: a row that an earlier try left open is finished or undone
// first. Then the rules are read again: an approval given under other rules is void (SM-907).
func (ls *Landings) landChecked(ctx context.Context, row change.Row) error {
	lease, err := ls.TakeRepository(ctx, row)
	if err != nil {
		return err
	}
	defer ls.DropRepository(context.WithoutCancel(ctx), lease)
	p, err := ls.Proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if p == nil {
		return fmt.Errorf("%s is to be landed without a proposal", row.ID)
	}
	open, ok, err := ls.Landing(ctx, row.ID)
	if err != nil {
		return err
	}
	if err := row.Request.Project.Plain(); err != nil {
		return err
	}
	switch {
	case ok && open.Unfinished():
		if again, err := ls.finish(ctx, &row, *p, open); err != nil || !again {
			return err
		}
	case ok && open.State == landing.Landed:
		return fmt.Errorf("%s has landed already, as %s", row.ID, open.ID) // the close and the move are one transaction
	}
	if err := ls.Needed(ctx, row); err != nil {
		return err
	}
	if row.Request.Kind != request.Revert { // what goes back has been there before
		if err := ls.Grounds.Rules.Decidable(); err != nil {
			return err
		}
	}
	head, same, err := ls.sameRules(ctx, row, *p)
	if err != nil {
		return err
	}
	if !same {
		return &otherRules{head}
	}
	if err := ls.loadable(ctx, row, *p); err != nil {
		return err
	}
	return ls.wayOn(ctx, row, ls.landNow(ctx, row, *p))
}

// finish finishes or undoes a landing that an earlier try left open. It returns true if that was undone because sallyport had stopped in
// the middle: what was approved still is, and lands anew. Nobody is asked a second time for that.
func (ls *Landings) finish(ctx context.Context, row *change.Row, p proposal.Proposal, open landing.Landing) (again bool, err error) {
	ahead, err := ls.Trials.Terms(ctx, *row, open)
	if err != nil {
		return false, err
	}
	if err := ls.carryOut(ctx, *row, p, open, ls.Lander.Recover, ahead); err != nil {
		return false, err
	}
	*row, err = ls.Row(ctx, row.ID)
	return row.State == change.Landing, err
}

// landNow computes a landing and carries it out.
func (ls *Landings) landNow(ctx context.Context, row change.Row, p proposal.Proposal) error {
	order, err := ls.order(ctx, row, p)
	if err != nil {
		return err
	}
	snapshot := false
	// Another home, or a person, may commit on other paths between computing and the lock.
	for range staleMax {
		var computed landing.Landing
		order.Landing = id.NewLanding()
		if computed, err = ls.Lander.Compute(ctx, order); err != nil {
			return err
		}
		if err := ls.assured(ctx, row, p, &computed); err != nil {
			return err
		}
		var ahead trial.Terms
		if ahead, err = ls.Trials.Terms(ctx, row, computed); err != nil {
			return err
		}
		if !snapshot && (ahead.Target.Group != "" || ahead.Target.Host) {
			if err := ls.DB.Snapshot(ctx, store.SnapshotPath(ls.Backups, row.ID)); err != nil {
				return fmt.Errorf("nothing lands without a copy of the database (SM-101): %w", err)
			}
			snapshot = true
		}
		if err := ls.armHost(ctx, row, p, ahead); err != nil {
			return err
		}
		err = ls.carryOut(ctx, row, p, computed, ls.Lander.Land, ahead)
		ls.disarmHost(ctx, row, ahead)
		if !errors.Is(err, landing.ErrStale) {
			return err
		}
	}
	return err
}

// staleMax is how often a landing is computed anew because the branch moved meanwhile.
const staleMax = 5

// carryOut runs a computed landing under the guard, or with Recover finishes or undoes one that a crash left
// open. What goes on trial stays armed. The keeper starts while the landing is prepared: it watches before the row is written, and
// nothing moves before that.
func (ls *Landings) carryOut(ctx context.Context, row change.Row, p proposal.Proposal, l landing.Landing,
	carry func(context.Context, landing.Landing, landing.Steps) (landing.Landing, error), ahead trial.Terms) error {
	var release func()
	var unwatched error
	held := make(chan struct{})
	go func() {
		defer close(held)
		release, unwatched = ls.Guard.Hold(l.ID)
	}()
	watched := func() error { <-held; return unwatched }
	if l.Unfinished() {
		if err := watched(); err != nil {
			return err
		}
	}

	steps := ls.journal(ctx, &row, p, ahead)
	if l.Unfinished() {
		steps.Again = ls.anew(ctx, &row, steps)
	}
	begin := steps.Journal
	steps.Journal = func(l landing.Landing) error {
		if err := watched(); err != nil {
			return err
		}
		return begin(l)
	}
	closed, err := carry(ctx, l, steps)
	if watched() == nil {
		release()
	}
	if row.State != change.InTrial { // the journal has moved it
		ls.Guard.Disarm(l.ID)
	}
	if err != nil {
		return err
	}
	return ls.tellOutcome(context.WithoutCancel(ctx), row, closed)
}

// journal writes the landing's own row. Closing it moves the change in the same transaction,
// so that the row tells the truth at every instant. Until it is begun a person may withdraw the change, and the daemon
// may end; then neither.
func (ls *Landings) journal(step context.Context, row *change.Row, p proposal.Proposal, ahead trial.Terms) landing.Steps {
	ctx := context.WithoutCancel(step)
	return landing.Steps{
		Journal: func(l landing.Landing) error {
			if step.Err() != nil {
				return context.Cause(step)
			}
			return ls.DB.InTx(ctx, func(tx store.Tx) error {
				at := *row
				if err := ledger.Refresh(ctx, tx, &at); err != nil {
					return err
				}
				if at.Cancel {
					return ledger.ErrCancelled
				}
				if err := tx.AddLanding(ctx, l); err != nil {
					return err
				}
				return ls.Append(ctx, tx, &change.Row{ID: row.ID},
					ledger.Move{By: audit.Host, Subject: string(l.ID), Digests: landingDigests(l)}, "began landing", l.Started)
			})
		},
		Again: func(l landing.Landing) error {
			return ls.DB.InTx(ctx, func(tx store.Tx) error { return ls.endAnew(ctx, tx, *row, l) })
		},
		Close: func(l landing.Landing) error {
			begins, err := ls.Clock()
			if err != nil {
				return err
			}
			at := *row
			err = ls.DB.InTx(ctx, func(tx store.Tx) error {
				at = *row
				if err := closeLanding(ctx, tx, ls.Secrets, l); err != nil {
					return err
				}
				if l.State == landing.Landed && !ahead.None() {
					return ls.beginTrial(ctx, tx, &at, trial.Begin(row.ID, l.ID, ahead.Target, ahead.Length, begins), l, ahead.Unproven)
				}
				return ls.moveToOutcome(ctx, tx, &at, p, l, ahead.Unproven)
			})
			if err == nil {
				*row = at
			}
			return err
		},
	}
}

// anew closes a landing in whose middle sallyport stopped, so that it is tried again; that counts as a try. A landing in which it stops
// each time ends like any other that was undone.
func (ls *Landings) anew(ctx context.Context, row *change.Row, steps landing.Steps) func(landing.Landing) error {
	ctx = context.WithoutCancel(ctx)
	return func(l landing.Landing) error {
		if row.Attempts+1 >= ledger.AttemptsMax {
			return steps.Close(l)
		}
		return ls.DB.InTx(ctx, func(tx store.Tx) error {
			if err := ls.endAnew(ctx, tx, *row, l); err != nil {
				return err
			}
			at := *row
			if err := ledger.Refresh(ctx, tx, &at); err != nil {
				return err
			}
			at.Attempts++
			return tx.MoveChange(ctx, at.State, at)
		})
	}
}

// endAnew closes a landing that is to be computed anew.
func (ls *Landings) endAnew(ctx context.Context, tx store.Tx, row change.Row, l landing.Landing) error {
	if err := closeLanding(ctx, tx, ls.Secrets, l); err != nil {
		return err
	}
	return ls.Append(ctx, tx, &change.Row{ID: row.ID, Reason: l.Reason}, ledger.Move{By: audit.Host, Subject: string(l.ID)}, "began anew", *l.Ended)
}

// closeLanding stores how a landing has ended, and takes secrets out of why.
func closeLanding(ctx context.Context, tx store.Tx, secrets *secret.Scanner, l landing.Landing) error {
	l.Reason = secrets.Redact(l.Reason)
	return tx.CloseLanding(ctx, l)
}

// beginTrial begins the trial of what has landed, in the transaction that closes the landing: the deadman runs from here.
// If nothing will be restarted, it says so, and why: what asks to confirm speaks of a new version that is back.
func (ls *Landings) beginTrial(ctx context.Context, tx store.Tx, row *change.Row, t trial.Trial, l landing.Landing, unproven string) error {
	if err := tx.AddTrial(ctx, t); err != nil {
		return err
	}
	if t.Target.None() && unproven == "" {
		unproven = "no target is configured, so nothing is restarted or probed"
	}
	return ls.Move(ctx, tx, row, ledger.Move{
		Event: change.Tried, By: audit.Host, Subject: string(l.ID), Reason: reasons(l.Reason, unproven), Next: "sallyport rollback " + string(row.ID),
		Digests: map[string]string{"commit": string(l.NewCommit), "tree": string(l.NewTree), "target": t.Digest},
	})
}

// moveToOutcome moves a change by what became of its landing; unproven says what of the repository's did not count.
func (ls *Landings) moveToOutcome(ctx context.Context, tx store.Tx, row *change.Row, p proposal.Proposal, l landing.Landing, unproven string) error {
	m := ledger.Move{By: audit.Host, Subject: string(l.ID), Reason: l.Reason}
	switch l.State {
	case landing.Landed: // a plain repository has nothing to restart: its trial is 0
		m.Event = change.Landed
		m.Reason = reasons(l.Reason, unproven)
		return ls.KeepLanding(ctx, tx, row, l, m)
	case landing.Undone:
		m.Event = change.Undone
		m.Because = problem.Errorf(problem.Refused, "sallyport approve "+string(row.ID),
			"sallyport rolled the landing back, and your files are as before: %s", l.Reason)
		if err := ls.Move(ctx, tx, row, m); err != nil {
			return err
		}
		return ls.reopen(ctx, tx, p, m.Because)
	case landing.Stranded:
		if row.State == change.RollbackFailed {
			return nil
		}
		m.Event = change.Stuck
		m.Because = Stranded(row.ID, l.Reason)
		return ls.Move(ctx, tx, row, m)
	}
	return fmt.Errorf("the landing %s has the unknown end %s", l.ID, l.State)
}

// landingDigests are what a landing moves from and to, as the audit log has them.
func landingDigests(l landing.Landing) map[string]string {
	return map[string]string{"head": string(l.Head), "tree": string(l.NewTree), "commit": string(l.NewCommit)}
}

// reasons makes one of two, either of which may be missing.
func reasons(first, second string) string {
	return strings.TrimSuffix(strings.TrimPrefix(first+"; "+second, "; "), "; ")
}

// tellOutcome tells of a landing whose row was closed.
func (ls *Landings) tellOutcome(ctx context.Context, row change.Row, l landing.Landing) error {
	fresh, err := ls.Row(ctx, row.ID)
	if err != nil {
		return err
	}
	ls.Moved(fresh)
	if fresh.State == change.Finalized {
		ls.Tidy(ls.Lasting(), fresh)
	}
	if fresh.State == change.RollbackFailed {
		return problem.Errorf(problem.Internal, "sallyport change show "+string(row.ID), "%s", l.Reason)
	}
	return nil
}

// Settle decides what becomes of a change whose landing came to no end. What it waits for is waited for, and what the
// machine is to blame for is tried a few times more. Then it is an answer: nothing has begun, so the same proposal goes
// back to the person, with the reason; or something has, and that could be neither finished nor undone.
func (ls *Landings) Settle(ctx context.Context, tx store.Tx, row *change.Row, because error) error {
	l, ok, err := tx.LandingOf(ctx, row.ID)
	if err != nil {
		return err
	}
	begun := ok && l.Unfinished()
	if ledger.Waits(because) || (begun || ledger.Transient(because)) && row.Attempts+1 < triesMax(because) {
		return ls.Postpone(ctx, tx, row, because)
	}
	if begun {
		return ls.strand(ctx, tx, row, l, because)
	}
	p, ok, err := tx.Proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if !ok || l.State == landing.Landed {
		return ls.Move(ctx, tx, row, ledger.Move{Event: change.Fail, By: audit.Host, Verb: "failed", Because: because})
	}
	next := problem.Of(because).Next
	if next == "" {
		next = "sallyport approve " + string(row.ID)
	}
	if err := ls.Move(ctx, tx, row, ledger.Move{Event: change.Held, By: audit.Host, Verb: "landing refused", Because: because, Next: next}); err != nil {
		return err
	}
	return ls.reopen(ctx, tx, p, because)
}

// strand says loudly that a landing which has begun cannot be brought to its end, and frees the repository for others.
func (ls *Landings) strand(ctx context.Context, tx store.Tx, row *change.Row, l landing.Landing, because error) error {
	l.State, l.Reason = landing.Stranded, problem.Of(because).Text
	if err := closeLanding(ctx, tx, ls.Secrets, l); err != nil {
		return err
	}
	return ls.Move(ctx, tx, row, ledger.Move{Event: change.Stuck, By: audit.Host, Subject: string(l.ID),
		Because: Stranded(row.ID, l.Reason), Wait: ledger.RetryWait})
}

// Stranded is why a landing is at neither of its ends, and what there is to do about it.
func Stranded(change id.Change, reason string) error {
	return problem.Errorf(problem.Internal, "sallyport change show "+string(change),
		"sallyport could neither finish the landing nor roll it back, and tries again: %s (sallyport change cancel %s leaves the files as they stand)", reason, change)
}

// triesMax is how often a step of landing is tried. Who holds the repository's lock may be another home's landing.
func triesMax(because error) int {
	if errors.Is(because, landing.ErrLocked) {
		return ledger.LockedMax
	}
	return ledger.AttemptsMax
}

// reopen asks about the same tree again, on a card that says why it did not land (SM-110, SM-162).
func (ls *Landings) reopen(ctx context.Context, tx store.Tx, p proposal.Proposal, because error) error {
	p.Number, p.At = p.Number+1, ledger.Now()
	p.Card.Note, p.Card.Drift, p.Card.Moved = "it did not land: "+problem.Of(because).Text, nil, nil // what still is in the way, FindMoved finds
	var red *redResult
	if errors.As(because, &red) {
		p.Card.Checks, p.Card.ChecksOn = red.results, &proposal.Ground{Head: red.Base, Tree: red.Tree}
	}
	var marked *unseen
	if errors.As(because, &marked) {
		ls.showMarks(&p, marked)
	}
	row, err := tx.Change(ctx, p.Change)
	if err != nil {
		return err
	}
	_, err = ls.Origin.OpenApproval(ctx, tx, row, p)
	return err
}

// askAgain judges the same tree by the rules as they are now, checks included, and asks about it anew.
func (ls *Landings) askAgain(ctx context.Context, row change.Row, head git.OID) error {
	o, err := ls.Submissions.Offer(ctx, row, head)
	if err != nil {
		return err
	}
	o.Note = "the rules have changed since this was approved"
	if why := o.Refused(row); why != nil {
		return why
	}
	if len(o.Judging.ChecksOf(row.Request)) > 0 {
		if err := ls.sayChecking(ctx, row, o.Note+": the checks run by the rules as they are now", "checks by other rules",
			map[string]string{"tree": string(o.Tree), "policy": o.Policy}); err != nil {
			return err
		}
	}
	results, why, err := ls.Checks.Check(ctx, row, o)
	if err != nil {
		return err
	}
	if why != nil {
		return why
	}
	return ls.Submissions.Ask(ctx, row, o, results, change.Asked)
}

// sameRules returns the branch's head and whether the rules there are the ones the approval names.
func (ls *Landings) sameRules(ctx context.Context, row change.Row, p proposal.Proposal) (head git.OID, same bool, err error) {
	head, err = ls.ground(ctx, row, p.Base)
	if err != nil || head == "" {
		return "", err == nil, err // a branch that is gone is Compute's to name
	}
	host, err := ls.Workspaces.EnsureRepository(ctx, row.Request.Project, head)
	if err != nil {
		return "", false, err
	}
	judging, err := ls.Grounds.Of(ctx, row, host, head)
	if err != nil {
		return "", false, err
	}
	return head, judging.Digest(row.Request) == p.Policy, nil
}

// loadable refuses to land rules that cannot be read afterwards: neither the next change nor its checks could begin. A path lands
// whole or not at all, so what stands in the approved commit is what would be read. What goes back has been there before.
func (ls *Landings) loadable(ctx context.Context, row change.Row, p proposal.Proposal) error {
	if row.Request.Kind == request.Revert {
		return nil
	}
	host, err := ls.Workspaces.EnsureRepository(ctx, row.Request.Project)
	if err != nil {
		return err
	}
	violations, err := ls.Grounds.Rules.Load(ctx, row.Request.Project, host, p.Commit, p.Edits)
	if err == nil && len(violations) > 0 {
		err = grounds.Refusal(row, violations)
	}
	return err
}

// order says what is to be landed, from the approved proposal alone.
func (ls *Landings) order(ctx context.Context, row change.Row, p proposal.Proposal) (landing.Order, error) {
	yes, err := store.Look(ctx, ls.DB, store.Tx.LatestApproval, row.ID)
	if err != nil {
		return landing.Order{}, err
	}
	if yes.Decision != approval.Approved || yes.Digest != p.Digest || yes.By == nil {
		return landing.Order{}, fmt.Errorf("%s is to be landed without an approval of %.12s", row.ID, p.Digest)
	}
	r := row.Request
	made, err := ls.Commits.ForLanding(ctx, row, p, yes)
	if err != nil {
		return landing.Order{}, err
	}
	return landing.Order{
		Change: row.ID, Project: r.Project, Branch: r.Branch, WorkTree: r.CheckedOut, New: r.From != "",
		Base: p.Base, Edits: p.Edits, Source: p.Commit, Author: made.Author, Committer: made.Committer, Signing: made.Signing,
		Message: made.Message, Home: row.Request.ConfigHome(),
	}, nil
}
