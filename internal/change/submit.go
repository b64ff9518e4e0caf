package change

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/approval"
	"sallyport/internal/audit"
	"sallyport/internal/checkpoint"
	"sallyport/internal/git"
	"sallyport/internal/id"
	"sallyport/internal/policy"
	"sallyport/internal/problem"
	"sallyport/internal/proposal"
	"sallyport/internal/request"
	"sallyport/internal/session"
	"sallyport/internal/store"
)

// offer is a tree that a person is to be asked about.
type offer struct {
	host     git.Dir
	base     git.OID // commit the edits are against
	commit   git.OID // with the proposed tree
	ref      string  // where that commit is kept
	tree     git.OID
	edits    []git.Edit
	from     *checkpoint.Checkpoint // nil for a revert
	judging  Judging
	policy   string // digest
	note     string
	drift    []string
	lastWord string
}

// submit runs the checks on the proposed tree and, when all pass, asks a person.
func (c *Controller) submit(ctx context.Context, row store.Change) error {
	o, err := c.offered(ctx, row)
	if err != nil {
		return err
	}
	results, err := c.check(ctx, row, o)
	if err != nil {
		return err
	}
	for _, r := range results {
		if !r.OK {
			err := problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "the check %q failed: %s", r.Command, r.Why)
			return c.fail(ctx, row, Move{Because: err, Verb: "refused by a check"})
		}
	}
	return c.ask(ctx, row, o, results, Proposed)
}

// offered finds what a change has to offer: its last valid checkpoint, or a revert's computed tree.
func (c *Controller) offered(ctx context.Context, row store.Change) (offer, error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project)
	if err != nil {
		return offer{}, err
	}
	o := offer{host: host, base: git.OID(row.Base)}
	if o.judging, err = c.rules(ctx, host, o.base); err != nil {
		return offer{}, err
	}
	if row.Request.Kind == request.Revert {
		err = c.offerRevert(ctx, row, &o)
	} else {
		err = c.offerCheckpoint(ctx, row, &o)
	}
	if err != nil {
		return offer{}, err
	}
	o.policy = policy.Digest(o.judging.Rules, plan(row.Request))
	if o.edits, err = host.Edits(ctx, o.base, o.commit); err != nil {
		return offer{}, err
	}
	o.tree, err = host.Tree(ctx, o.commit)
	return o, err
}

func (c *Controller) offerCheckpoint(ctx context.Context, row store.Change, o *offer) error {
	all, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(cp checkpoint.Checkpoint) bool { return cp.Trigger == checkpoint.AtEnd })
	if i < 0 || all[len(all)-1].Status != checkpoint.Valid {
		return fmt.Errorf("%s has no valid last checkpoint", row.ID)
	}
	o.from = &all[len(all)-1]
	o.commit, o.ref = o.from.Commit, checkpoint.Ref(row.ID, o.from.Number)
	o.lastWord, err = session.LastWords(c.sessionDir(o.from.Session))
	return err
}

// plan is what a request said the change may touch.
func plan(r request.Request) policy.Plan { return policy.Plan{Allow: r.Allow, Forbid: r.Forbid} }

// ask brings the proposed objects to the person's repository, computes the card and opens an approval.
func (c *Controller) ask(ctx context.Context, row store.Change, o offer, results []proposal.CheckResult, e Event) error {
	if err := c.Workspaces.Offer(ctx, row.Request.Project, row.ID, o.ref, o.commit, o.base); err != nil {
		return fmt.Errorf("bring the proposal to the repository: %w", err)
	}
	number := 1
	before, err := c.proposal(ctx, row.ID)
	if err != nil {
		return err
	}
	if before != nil {
		number = before.Number + 1
	}
	p, err := proposal.Make(ctx, proposal.Making{
		Objects: o.host, Change: row.ID, Kind: string(row.Request.Kind), Number: number,
		Text: row.Request.Text, Repo: row.Request.Project.Top, Branch: row.Request.Branch,
		Checkpoint: o.from, Base: o.base, Commit: o.commit, Tree: o.tree, Edits: o.edits,
		Policy: o.policy, Checks: results, Drift: o.drift, Note: o.note, AgentSays: o.lastWord, At: now(),
	})
	if err != nil {
		return fmt.Errorf("compute the card: %w", err)
	}
	_, err = c.inTx(ctx, row, func(tx store.Tx, row *store.Change) error { return c.open(ctx, tx, row, p, e) })
	return err
}

// open stores a proposal with its approval and moves the change to wait for it. What was
// approved beforehand by flag goes on to landing in the same transaction, and is audited as that.
func (c *Controller) open(ctx context.Context, tx store.Tx, row *store.Change, p proposal.Proposal, e Event) error {
	if err := tx.AddProposal(ctx, p); err != nil {
		return err
	}
	asked, err := approval.Open(ctx, tx, id.NewApproval(), p, p.At)
	if err != nil {
		return err
	}
	m := Move{Event: e, By: audit.Host, Subject: string(asked.ID), Reason: p.Card.Note, Next: "sallyport approve " + string(row.ID), Digests: digests(p)}
	if err := c.move(ctx, tx, row, m); err != nil {
		return err
	}
	if row.Request.Approve != request.Yes || p.Number > 1 || len(p.Card.Drift) > 0 {
		return nil
	}
	return c.approve(ctx, tx, row, asked.ID, p.Digest, row.Request.By, ByFlag)
}

// ByFlag says that a person approved before the change was made.
const ByFlag = "pre-approved by flag"

func digests(p proposal.Proposal) map[string]string {
	return map[string]string{"base": string(p.Base), "tree": string(p.Tree), "policy": p.Policy, "proposal": string(p.Digest)}
}

// fail ends a change that is not wanted as it is; its work stays under its refs.
func (c *Controller) fail(ctx context.Context, row store.Change, m Move) error {
	m.Event, m.By = Fail, audit.Host
	_, err := c.inTx(ctx, row, func(tx store.Tx, row *store.Change) error { return c.move(ctx, tx, row, m) })
	if err == nil {
		c.tidy(ctx, row)
	}
	return err
}

// proposal returns a change's current proposal, nil if it has none.
func (c *Controller) proposal(ctx context.Context, change id.Change) (*proposal.Proposal, error) {
	var found *proposal.Proposal
	err := c.DB.Read(ctx, func(tx store.Tx) error {
		p, ok, err := tx.Proposal(ctx, change)
		if ok {
			found = &p
		}
		return err
	})
	return found, err
}
