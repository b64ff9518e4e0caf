package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
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

// offer is a tree that a person is to be asked about.
type offer struct {
	host     git.Dir
	base     git.OID // commit the edits are against
	commit   git.OID // the proposed tree upon the base, as one commit
	tree     git.OID
	edits    []git.Edit
	from     *checkpoint.Checkpoint // nil for a revert
	judging  Judging
	policy   string // digest
	marks    []policy.Mark
	note     string
	lastWord string
}

// submit runs the checks on the proposed tree and, when all pass, asks a person.
func (c *Controller) submit(ctx context.Context, row change.Row) error {
	o, err := c.offered(ctx, row, git.OID(row.Base))
	if err != nil {
		return err
	}
	if row.Request.Kind == request.Edit && len(o.edits) == 0 {
		return c.idle(ctx, row, o)
	}
	if why := o.marked(row); why != nil {
		return c.refused(ctx, row, o, nil, why, "refused by the policy")
	}
	v, known := c.recall(row.ID, o)
	results, why := v.results, v.why
	if !known {
		if results, why, err = c.check(ctx, row, o); err != nil {
			return err
		}
	}
	if why != nil {
		return c.refused(ctx, row, o, results, why, "refused by a check")
	}
	return c.ask(ctx, row, o, results, change.Proposed)
}

// offered finds what a change has to offer: its last valid checkpoint, or a revert's computed
// tree. The rules are those that stand at the commit rules.
func (c *Controller) offered(ctx context.Context, row change.Row, rules git.OID) (offer, error) {
	host, err := c.Workspaces.Repository(ctx, row.Request.Project, git.OID(row.Base), rules)
	if err != nil {
		return offer{}, err
	}
	o := offer{host: host, base: git.OID(row.Base)}
	if o.judging, err = c.judges(ctx, row, host, rules); err != nil {
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
	o.policy = o.judging.digest(row.Request)
	if o.edits, err = host.Edits(ctx, o.base, o.commit); err != nil {
		return offer{}, err
	}
	if o.tree, err = host.Tree(ctx, o.commit); err != nil {
		return offer{}, err
	}
	var named []git.Named
	if row.Request.Kind != request.Revert { // nothing in the configuration may hold what goes back
		if named, err = row.Request.Project.Named(ctx, row.Request.ConfigHome()); err != nil {
			return offer{}, err
		}
	}
	o.marks, err = proposal.Marks(ctx, host, o.commit, o.edits, named)
	return o, err
}

// marked returns why nobody is asked about what an offer holds, if the home's policy says so. What goes back was there before.
func (o offer) marked(row change.Row) error {
	if len(o.marks) == 0 || o.judging.Rules.Marks != policy.MarksRefuse || row.Request.Kind == request.Revert {
		return nil
	}
	return problem.Errorf(problem.Refused, "sallyport change show "+string(row.ID), "%s: %s; the home's policy.yaml refuses such a change (marks: refuse)",
		inert.Path(o.marks[0].Path), o.marks[0].Says)
}

func (c *Controller) offerCheckpoint(ctx context.Context, row change.Row, o *offer) error {
	all, err := c.Checkpoints(ctx, row.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(cp checkpoint.Checkpoint) bool { return cp.ID == row.Chosen })
	if i < 0 || all[i].Status != checkpoint.Valid || all[i].Base != o.base { // only valid can be proposed (SV-024, SV-040)
		return fmt.Errorf("%s has no valid checkpoint to offer", row.ID)
	}
	o.from = &all[i]
	if o.commit, err = c.Workspaces.Propose(ctx, o.host, row.ID, o.from.Commit, o.base); err != nil {
		return err
	}
	if last := all[len(all)-1]; last.ID != o.from.ID {
		o.note = fmt.Sprintf("this is checkpoint %d of %d; what the agent did after it is not part of this card", o.from.Number, last.Number)
	}
	o.lastWord, err = session.LastWords(c.sessionDir(o.from.Session))
	return err
}

// digest names all that judges a change: rules, plan, and the repository's own checks (SM-907).
func (j Judging) digest(r request.Request) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%s\n", policy.Digest(j.Rules, plan(r)), j.Checks, j.secretRules()))
	if len(j.Setup) > 0 {
		sum = sha256.Sum256(fmt.Appendf(sum[:], "%q", j.Setup))
	}
	return hex.EncodeToString(sum[:])
}

// plan is what a request said the change may touch.
func plan(r request.Request) policy.Plan { return policy.Plan{Allow: r.Allow, Forbid: r.Forbid} }

// ask computes the card and opens an approval. Nothing of it goes to the person's repository before it lands.
func (c *Controller) ask(ctx context.Context, row change.Row, o offer, results []proposal.CheckResult, e change.Event) error {
	p, err := c.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	_, err = c.inTx(ctx, row, func(tx store.Tx, row *change.Row) error { return c.open(ctx, tx, row, p, e) })
	return err
}

// refused ends a change that a check or the policy refused, which verb says. Its card is kept, with the check's last words; nobody is asked.
func (c *Controller) refused(ctx context.Context, row change.Row, o offer, results []proposal.CheckResult, why error, verb string) error {
	p, err := c.propose(ctx, row, o, results)
	if err != nil {
		return err
	}
	row, err = c.inTx(ctx, row, func(tx store.Tx, row *change.Row) error {
		if err := tx.AddProposal(ctx, p); err != nil {
			return err
		}
		if err := c.passed(ctx, tx, *row, p); err != nil {
			return err
		}
		m := Move{Event: change.Fail, By: audit.Host, Verb: verb, Because: why, Digests: digests(p)}
		if len(o.edits) == 0 {
			m.Outcome = change.BaseFailsChecks
		}
		return c.move(ctx, tx, row, m)
	})
	if err == nil {
		c.tidy(c.lasting(), row)
	}
	return err
}

// noted is what a card notes of an offer.
func (o offer) noted() string {
	notes := slices.DeleteFunc([]string{o.note, o.judging.SecretNote}, func(s string) bool { return s == "" })
	return strings.Join(notes, "; ")
}

// propose computes the proposal and its card.
func (c *Controller) propose(ctx context.Context, row change.Row, o offer, results []proposal.CheckResult) (proposal.Proposal, error) {
	number := 1
	before, err := c.proposal(ctx, row.ID)
	if err != nil {
		return proposal.Proposal{}, err
	}
	if before != nil {
		number = before.Number + 1
	}
	p, err := proposal.Make(ctx, proposal.Making{
		Objects: o.host, Change: row.ID, Kind: string(row.Request.Kind), Number: number,
		Text: row.Request.Text, Repo: row.Request.Project.Top, Branch: row.Request.Branch,
		Checkpoint: o.from, Base: o.base, Commit: o.commit, Tree: o.tree, Edits: o.edits,
		Policy: o.policy, Marks: o.marks, MarksWord: row.Request.Kind != request.Revert && o.judging.Rules.Marks != policy.MarksShow, Checks: results, Note: o.noted(), AgentSays: o.lastWord, At: now(), Secrets: c.Secrets,
	})
	if err != nil {
		return proposal.Proposal{}, fmt.Errorf("compute the card: %w", err)
	}
	p.Card.Made = c.Secrets.Redact(madeBy(row.Request))
	if p.Card.Setup, err = c.lostBy(ctx, row); err != nil {
		return p, err
	}
	if p.Card.Then, err = c.foretold(ctx, row, p); err != nil {
		return p, err
	}
	if err := c.commits.Foretell(ctx, row, o.host, o.base, o.judging.Subject, &p.Card); err != nil {
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
	m := Move{Event: e, By: audit.Host, Subject: string(asked.ID), Reason: p.Card.Note, Next: "sallyport approve " + string(row.ID), Digests: digests(p)}
	if err := c.move(ctx, tx, row, m); err != nil {
		return err
	}
	if row.Request.Approve != request.Yes || p.Number > 1 || p.Card.MarksWord { // said before anybody saw what it would cover
		return nil
	}
	return c.approve(ctx, tx, row, asked.ID, p.Digest, row.Request.By, Words{Via: approval.ViaFlag})
}

func digests(p proposal.Proposal) map[string]string {
	return map[string]string{"base": string(p.Base), "tree": string(p.Tree), "policy": p.Policy, "proposal": string(p.Digest)}
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
