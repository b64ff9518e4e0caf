package control

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/judge"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/checkpoint"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/path/session"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/policy"
	"sallyport/internal/store"
)

// submit runs the checks on the proposed tree and, when all pass, asks a person.
func (c *Controller) submit(ctx context.Context, row change.Row) error {
	o, err := c.offered(ctx, row, git.OID(row.Base))
	if err != nil {
		return err
	}
	if row.Request.Kind == request.Edit && len(o.Edits) == 0 {
		return c.idle(ctx, row, o)
	}
	if why := o.Refused(row); why != nil {
		return c.refused(ctx, row, o, nil, why, "refused by the policy")
	}
	v, known := c.checks.Recall(row.ID, o)
	results, why := v.Results, v.Why
	if !known {
		if results, why, err = c.checks.Check(ctx, row, o); err != nil {
			return err
		}
	}
	if why != nil {
		return c.refused(ctx, row, o, results, why, "refused by a check")
	}
	return c.ask(ctx, row, o, results, change.Proposed)
}

// offers is how landing asks a person anew.
type offers struct{ c *Controller }

func (o offers) Offer(ctx context.Context, row change.Row, rules git.OID) (judge.Offer, error) {
	return o.c.offered(ctx, row, rules)
}

func (o offers) Check(ctx context.Context, row change.Row, offer judge.Offer) ([]proposal.CheckResult, error, error) {
	return o.c.checks.Check(ctx, row, offer)
}

func (o offers) Ask(ctx context.Context, row change.Row, offer judge.Offer, results []proposal.CheckResult, e change.Event) error {
	return o.c.ask(ctx, row, offer, results, e)
}

// offered finds what a change has to offer: its last valid checkpoint, or a revert's computed
// tree. The rules are those that stand at the commit rules.
func (c *Controller) offered(ctx context.Context, row change.Row, rules git.OID) (judge.Offer, error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project, git.OID(row.Base), rules)
	if err != nil {
		return judge.Offer{}, err
	}
	o := judge.Offer{Host: host, Base: git.OID(row.Base)}
	if o.Judging, err = c.judge.Of(ctx, row, host, rules); err != nil {
		return judge.Offer{}, err
	}
	if row.Request.Kind == request.Revert {
		err = c.offerRevert(ctx, row, &o)
	} else {
		err = c.offerCheckpoint(ctx, row, &o)
	}
	if err != nil {
		return judge.Offer{}, err
	}
	o.Policy = o.Judging.Digest(row.Request)
	if o.Edits, err = host.Edits(ctx, o.Base, o.Commit); err != nil {
		return judge.Offer{}, err
	}
	if o.Tree, err = host.Tree(ctx, o.Commit); err != nil {
		return judge.Offer{}, err
	}
	var named []git.Named
	if row.Request.Kind != request.Revert { // nothing in the configuration may hold what goes back
		if named, err = row.Request.Project.Named(ctx, row.Request.ConfigHome()); err != nil {
			return judge.Offer{}, err
		}
	}
	o.Marks, err = proposal.Marks(ctx, host, o.Commit, o.Edits, named)
	return o, err
}

func (c *Controller) offerCheckpoint(ctx context.Context, row change.Row, o *judge.Offer) error {
	all, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(cp checkpoint.Checkpoint) bool { return cp.ID == row.Chosen })
	if i < 0 || all[i].Status != checkpoint.Valid || all[i].Base != o.Base { // only valid can be proposed (SV-024, SV-040)
		return fmt.Errorf("%s has no valid checkpoint to offer", row.ID)
	}
	o.From = &all[i]
	if o.Commit, err = c.Workspaces.Propose(ctx, o.Host, row.ID, o.From.Commit, o.Base); err != nil {
		return err
	}
	if last := all[len(all)-1]; last.ID != o.From.ID {
		o.Note = fmt.Sprintf("this is checkpoint %d of %d; what the agent did after it is not part of this card", o.From.Number, last.Number)
	}
	o.LastWord, err = session.LastWords(c.sessionDir(o.From.Session))
	return err
}

// ask computes the card and opens an approval. Nothing of it goes to the person's repository before it lands.
func (c *Controller) ask(ctx context.Context, row change.Row, o judge.Offer, results []proposal.CheckResult, e change.Event) error {
	p, err := c.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	_, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error { return c.open(ctx, tx, row, p, e) })
	return err
}

// refused ends a change that a check or the policy refused, which verb says. Its card is kept, with the check's last words; nobody is asked.
func (c *Controller) refused(ctx context.Context, row change.Row, o judge.Offer, results []proposal.CheckResult, why error, verb string) error {
	p, err := c.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	row, err = c.InTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		if err := tx.AddProposal(ctx, p); err != nil {
			return err
		}
		if err := c.passed(ctx, tx, *row, p); err != nil {
			return err
		}
		m := ledger.Move{Event: change.Fail, By: audit.Host, Verb: verb, Because: why, Digests: p.Digests()}
		if len(o.Edits) == 0 {
			m.Outcome = change.BaseFailsChecks
		}
		return c.Move(ctx, tx, row, m)
	})
	if err == nil {
		c.tidy(c.Lasting(), row)
	}
	return err
}

// propose computes the proposal and its card.
func (c *Controller) propose(ctx context.Context, row change.Row, o judge.Offer, results []proposal.CheckResult) (proposal.Proposal, error) {
	number := 1
	before, err := c.Proposal(ctx, row.ID)
	if err != nil {
		return proposal.Proposal{}, err
	}
	if before != nil {
		number = before.Number + 1
	}
	p, err := proposal.Make(ctx, proposal.Making{
		Objects: o.Host, Change: row.ID, Kind: string(row.Request.Kind), Number: number,
		Text: row.Request.Text, Repo: row.Request.Project.Top, Branch: row.Request.Branch,
		Checkpoint: o.From, Base: o.Base, Commit: o.Commit, Tree: o.Tree, Edits: o.Edits,
		Policy: o.Policy, Marks: o.Marks, MarksWord: row.Request.Kind != request.Revert && o.Judging.Rules.Marks != policy.MarksShow, Checks: results, Note: o.Noted(), AgentSays: o.LastWord, At: ledger.Now(), Secrets: c.Secrets,
	})
	if err != nil {
		return proposal.Proposal{}, fmt.Errorf("compute the card: %w", err)
	}
	p.Card.Made = c.Secrets.Redact(madeBy(row.Request))
	if p.Card.Setup, err = c.stocks.LostBy(ctx, c.opener.Spec(row)); err != nil {
		return p, err
	}
	if p.Card.Then, err = c.beside(ctx, row); err != nil {
		return p, err
	}
	then, err := c.confirm.Foretell(ctx, row, p)
	if err != nil {
		return p, err
	}
	p.Card.Then = append(p.Card.Then, then...)
	if err := c.commits.Foretell(ctx, row, o.Host, o.Base, o.Judging.Subject, &p.Card); err != nil {
		return p, err
	}
	err = c.DB.Read(ctx, func(tx store.Tx) error {
		uses, err := tx.Uses(ctx, row.ID)
		if err != nil {
			return err
		}
		p.Card.Used = budget.Words(uses)
		asked, err := tx.Asked(ctx, row.ID)
		p.Card.Network = reached(row.Request.Egress, asked)
		return err
	})
	return p, err
}

// madeBy names the command that made a change, as a shell takes it, or the agent with its model; "" for a revert.
func madeBy(r request.Request) string {
	switch {
	case r.Kind == request.Revert:
		return ""
	case len(r.Argv) > 0:
		return inert.Command(r.Argv)
	case r.Model != "":
		return r.Agent + ", " + r.Model
	}
	return r.Agent
}

// hostsOnCard is how many hosts that were refused a card names.
const hostsOnCard = 5

// reached says on a card what the person let a sandbox reach beside its model, and what else it asked for and was refused.
func reached(granted []string, asked []session.Asked) (lines []string) {
	for _, e := range granted {
		lines = append(lines, "the agent's sandbox could reach "+e)
	}
	var hosts []string
	times := map[string]int64{}
	for _, a := range asked {
		if a.Verdict != string(egress.Refused) || a.Route != "" {
			continue
		}
		if a.Host == "" && a.Method == "" { // so many were asked for that they are told together
			lines = append(lines, fmt.Sprintf("sallyport refused %d requests to other hosts, or to its model", a.Count))
			continue
		}
		if a.Host == "" {
			continue
		}
		if times[a.Host] == 0 {
			hosts = append(hosts, a.Host)
		}
		times[a.Host] += a.Count
	}
	for i, h := range hosts {
		if i == hostsOnCard {
			return append(lines, fmt.Sprintf("sallyport refused requests to %d other hosts", len(hosts)-hostsOnCard))
		}
		what := "a request"
		if n := times[h]; n > 1 {
			what = fmt.Sprintf("%d requests", n)
		}
		lines = append(lines, "sallyport refused "+what+" to "+h)
	}
	return lines
}

// open stores a proposal with its approval and moves the change to wait for it. What was
// approved beforehand by flag goes on to landing in the same transaction, and is audited as that.
func (c *Controller) open(ctx context.Context, tx store.Tx, row *change.Row, p proposal.Proposal, e change.Event) error {
	if err := tx.AddProposal(ctx, p); err != nil {
		return err
	}
	if err := c.passed(ctx, tx, *row, p); err != nil {
		return err
	}
	asked, err := approval.Open(ctx, tx, id.NewApproval(), p, p.At)
	if err != nil {
		return err
	}
	m := ledger.Move{Event: e, By: audit.Host, Subject: string(asked.ID), Reason: p.Card.Note, Next: "sallyport approve " + string(row.ID), Digests: p.Digests()}
	if err := c.Move(ctx, tx, row, m); err != nil {
		return err
	}
	if row.Request.Approve != request.Yes || p.Number > 1 || p.Card.MarksWord { // said before anybody saw what it would cover
		return nil
	}
	return c.Answers.Record(ctx, tx, row, asked.ID, p.Digest, row.Request.By, approve.Words{Via: approval.ViaFlag})
}

// passed writes an audit entry for every check of a proposal that succeeded; the one that did not
// is what refuses the change.
func (c *Controller) passed(ctx context.Context, tx store.Tx, row change.Row, p proposal.Proposal) error {
	for _, r := range p.Card.Checks {
		if !r.OK {
			continue
		}
		row.Reason = r.Command
		if err := c.Append(ctx, tx, &row, ledger.Move{By: audit.Host, Digests: p.Digests()}, "passed a check", p.At); err != nil {
			return err
		}
	}
	return nil
}
