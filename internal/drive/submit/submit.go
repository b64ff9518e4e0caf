// Package submit offers what a change has come to: the checks run on exactly that tree, the card is computed, and a person is asked.
package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/git"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/authorship"
	"sallyport/internal/drive/check"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/drive/revert"
	"sallyport/internal/drive/standing"
	"sallyport/internal/drive/stock"
	"sallyport/internal/drive/work"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/workspace"
	"sallyport/internal/port/agent"
	"sallyport/internal/store"
)

// Parts are what submissions stand on.
type Parts struct {
	*ledger.Ledger
	Opener      work.Opener
	Workspaces  *workspace.Manager
	Stocks      *stock.Stocks
	Checks      *check.Checker
	Commits     authorship.Composer
	Reverts     *revert.Reverts
	Standing    *standing.Groups
	Answers     *approve.Answers
	Trials      Trials
	Host        Host
	Ops         disk.Ops
	SessionsDir string                                    // folder of sessions
	Tidy        func(ctx context.Context, row change.Row) // clears up after a change that has ended
	// Moved puts on a card what the branch has become since its base.
	Moved func(ctx context.Context, row change.Row, p *proposal.Proposal)
	// SendBack has the agent of a swap go on from what it proposed.
	SendBack func(ctx context.Context, tx store.Tx, row *change.Row, m ledger.Move) error
}

// Trials knows what happens on the host once a proposal has landed.
type Trials interface {
	Foretell(ctx context.Context, row change.Row, p proposal.Proposal) (then []string, err error)
}

// Host tries what a change makes of the host itself, before anybody is asked (SM-913).
type Host interface {
	// Rehearse returns how it went, or what failed of the candidate; an err is the machine's fault. release is the digest of the one that was
	// approved for it; "" = there is none yet.
	Rehearse(ctx context.Context, row change.Row, o grounds.Offer, release string) (*proposal.Host, *proposal.CheckResult, error)
}

// Submissions offers changes to people.
type Submissions struct{ Parts }

// New returns Submissions.
func New(p Parts) *Submissions { return &Submissions{p} }

// Submit runs the checks on the proposed tree and, when all pass, asks a person.
func (s *Submissions) Submit(ctx context.Context, row change.Row) error {
	o, err := s.Offer(ctx, row, git.OID(row.Base))
	if err != nil {
		return err
	}
	if row.Request.Worked() && len(o.Edits) == 0 {
		return s.endIdle(ctx, row, o)
	}
	if why := o.Refused(row); why != nil {
		return s.fail(ctx, row, o, nil, why, "refused by the policy")
	}
	v, known := s.Checks.Recall(row.ID, o)
	results, why := v.Results, v.Why
	if !known {
		if results, why, err = s.Checks.Check(ctx, row, o); err != nil {
			return err
		}
	}
	if why != nil {
		return s.fail(ctx, row, o, results, why, "refused by a check")
	}
	if why, err = s.rehearse(ctx, row, &o, &results); err != nil {
		return err
	}
	if why != nil {
		return s.fail(ctx, row, o, results, why, byRehearsal)
	}
	return s.Ask(ctx, row, o, results, change.Proposed)
}

// byRehearsal is what the audit log says of a change whose candidate for the host failed.
const byRehearsal = "refused by the rehearsal"

// rehearse tries what an offer makes of the host, if it changes that. A candidate that fails is one more check that failed, and why.
func (s *Submissions) rehearse(ctx context.Context, row change.Row, o *grounds.Offer, results *[]proposal.CheckResult) (why, err error) {
	if !o.ForHost() || o.Rehearsed != nil {
		return nil, nil
	}
	host, failed, err := s.Host.Rehearse(ctx, row, *o, "")
	if failed == nil {
		o.Rehearsed = host
		if host != nil && host.Quiet() && !slices.Contains(o.Banner, lossyBanner) { // whatever its path, what brings a database up to date is a migration
			o.Banner = append(o.Banner, lossyBanner)
		}
		return nil, err
	}
	*results = append(*results, *failed)
	return problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "the %s failed: %s", failed.Command, failed.Why), nil
}

// fail ends a change that a check or the policy refused, which verb says. Its card is kept, with the check's last words; nobody is asked.
// The agent of a swap goes on instead: what it proposes is checked only once its session has ended.
func (s *Submissions) fail(ctx context.Context, row change.Row, o grounds.Offer, results []proposal.CheckResult, why error, verb string) error {
	p, err := s.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	row, err = s.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		if err := s.Origin.PutProposal(ctx, tx, &p); err != nil {
			return err
		}
		if err := s.RecordPassedChecks(ctx, tx, *row, p.Card.Checks, "passed a check", p.Digests(), p.At); err != nil {
			return err
		}
		m := ledger.Move{Event: change.Fail, By: audit.Host, Verb: verb, Because: why, Digests: p.Digests()}
		if row.Swap != nil && !row.Cancel {
			tried, err := s.tried(ctx, tx, p)
			if err != nil {
				return err
			}
			if tried < cmp.Or(row.Request.Rounds, agent.RoundsDefault) {
				m.Event = change.Returned // it is told what refused what it proposed, and how
				if err := s.SendBack(ctx, tx, row, m); err != nil || verb != byRehearsal {
					return err
				}
				return s.Origin.Tell(ctx, tx, *row, returned(*row)) // people were told that it takes place
			}
		}
		if len(o.Edits) == 0 {
			m.Outcome = change.BaseFailsChecks
		}
		return s.Move(ctx, tx, row, m)
	})
	if err == nil && row.State.Final() {
		s.Tidy(s.Lasting(), row)
	}
	return err
}

// returned says where the host was to be asked about that its candidate has failed, and what comes of it.
func returned(row change.Row) string {
	return fmt.Sprintf("Nobody is asked about %s yet: %s; %s hears why, goes on with it, and proposes it again", row.ID,
		inert.Line(row.Reason), inert.Short(row.Request.Dev, 60))
}
