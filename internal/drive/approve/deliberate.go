package approve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/person"
)

// Need says who has to approve a change of what a group runs, and how: by what it reaches, by who asked for it, and by the roles and the
// policy of now. Errors: problem.Refused, saying why nobody can (SM-090).
func (a *Answers) Need(ctx context.Context, tx store.Tx, r request.Request, class right.Class) (right.Need, error) {
	wishers, err := ledger.Wishers(ctx, tx, r)
	if err != nil {
		return right.Need{}, err
	}
	var others []string
	for _, p := range wishers[1:] {
		others = append(others, p.String())
	}
	people, err := ledger.Entitled(ctx, tx)
	if err != nil {
		return right.Need{}, err
	}
	return right.Approvers(right.Asked{Class: class, Group: r.Group, Wisher: wishers[0].String(), Others: others, People: people,
		Rules: a.Rules.Approvals(), Mend: config.EditPolicy(a.Home)})
}

// Entitled says who has to approve what a card is about. What no group asked for is the owner's, or of who says what the template is to have.
// An error may come with who may still say no.
func (a *Answers) Entitled(ctx context.Context, tx store.Tx, r request.Request, c proposal.Card) (right.Need, error) {
	switch {
	case r.Promotes != "":
		return a.Promoters(ctx, tx, r.Promotes)
	case c.Class == "":
		return a.Owner.Need(), nil
	}
	need, err := a.Need(ctx, tx, r, right.Class(c.Class))
	if err != nil && len(need.No) == 0 { // a policy that leaves nobody keeps the owner from no no
		need.No = a.Owner.Need().No
	}
	return need, err
}

// Promoters say whether the template is to have what a change of a group has landed: who approved that and still could, and the owner (SM-150).
func (a *Answers) Promoters(ctx context.Context, tx store.Tx, of id.Change) (right.Need, error) {
	row, err := tx.Change(ctx, of)
	if err != nil {
		return right.Need{}, err
	}
	tried, err := ledger.Tried(ctx, tx, row)
	if err != nil {
		return right.Need{}, err
	}
	may, err := a.entitledTo(ctx, tx, row)
	if len(may.No) > 0 { // the policy may leave nobody: then it is the owner's
		err = nil
	}
	who := a.Owner.Need().May
	for _, p := range tried.Approvers {
		if slices.Contains(may.May, p.Person) && !slices.Contains(who, p.Person) {
			who = append(who, p.Person)
		}
	}
	return right.Only(who...), err
}

// Shows says who answers how a folder is shown by what a group has changed: who would approve the change, and the owner (CH-026).
func (a *Answers) Shows(ctx context.Context, tx store.Tx, of id.Change) (right.Need, error) {
	row, err := tx.Change(ctx, of)
	if err != nil {
		return right.Need{}, err
	}
	p, ok, err := tx.Proposal(ctx, of)
	if err != nil {
		return right.Need{}, err
	}
	if !ok { // the least that it can reach: what the diff reaches is approved by its card
		p.Card.Class = string(right.Group)
	}
	need, err := a.Entitled(ctx, tx, row.Request, p.Card)
	if len(need.No) > 0 {
		err = nil
	}
	who := a.Owner.Need().May
	for _, k := range need.May {
		if !slices.Contains(who, k) {
			who = append(who, k)
		}
	}
	return right.Only(who...), err
}

// Asks says whom a card goes to. What a conversation does not show whole goes to the owner, too, where too few of those have a command line on
// this machine; nobody, where nobody can approve it: whoever tries is told why.
func (a *Answers) Asks(ctx context.Context, tx store.Tx, row change.Row, p proposal.Proposal) ([]id.Person, error) {
	need, err := a.Entitled(ctx, tx, row.Request, p.Card)
	if problem.KindOf(err) == problem.Refused {
		err = nil
	}
	if err != nil || p.Card.Unspoken() == "" {
		return need.Ask, err
	}
	people, err := tx.People(ctx)
	if err != nil {
		return nil, err
	}
	able := 0 // to approve it where it is shown whole
	for _, k := range people {
		if slices.Contains(need.Ask, k.ID) && slices.ContainsFunc(k.Accounts, func(of person.Account) bool { return of.Platform == person.Terminal }) {
			able++
		}
	}
	who := need.Ask
	for _, owner := range a.Owner.Need().May {
		if able < max(1, need.Yeses) && !slices.Contains(who, owner) {
			who = append(slices.Clone(who), owner)
		}
	}
	return who, nil
}

// AskedOf is the group whose change an approval is about, or that of a change, if somebody may answer it at this moment; "" otherwise. Whoever
// may answer a card may read what it is about; who may not learns nothing of it.
func (a *Answers) AskedOf(ctx context.Context, ref string, by audit.Actor) (of string, err error) {
	err = a.DB.Read(ctx, func(tx store.Tx) error {
		of = ""
		about := id.Change(ref)
		if id.KindOf(ref) != "change" {
			asked, err := tx.Approval(ctx, id.Approval(ref))
			if err != nil {
				return err
			}
			about = asked.Change
		}
		row, err := tx.Change(ctx, about)
		if err != nil || row.Request.Kind != request.Swap {
			return err
		}
		need, err := a.entitledTo(ctx, tx, row)
		if by.Kind == "person" && by.Person != "" && slices.Contains(need.No, by.Person) {
			of = row.Request.Group
			return nil
		}
		return err
	})
	if kind := problem.KindOf(err); kind == problem.NotFound || kind == problem.Refused {
		err = nil
	}
	return of, err
}

// entitledTo is Entitled about a change's proposal.
func (a *Answers) entitledTo(ctx context.Context, tx store.Tx, row change.Row) (right.Need, error) {
	p, _, err := tx.Proposal(ctx, row.ID)
	if err != nil {
		return right.Need{}, err
	}
	return a.Entitled(ctx, tx, row.Request, p.Card)
}

// tellYes tells of a yes that waits for another's, wherever it was asked for.
func (a *Answers) tellYes(ctx context.Context, tx store.Tx, row change.Row, asked approval.Approval, need right.Need, by audit.Actor, w Words) error {
	q, err := tx.Question(ctx, asked.Question)
	if err != nil {
		return err
	}
	all, err := tx.Answers(ctx, q.ID)
	if err != nil {
		return err
	}
	given, of := q.Given(all, need), max(need.Yeses, 1)
	text := fmt.Sprintf("%s approved %s: %d of %d. It lands once another has approved it.", inert.Short(by.Name, 60), row.ID, given, of)
	if given >= of {
		text = fmt.Sprintf("%s approved %s: %d of %d. It lands once the owner has approved it, too.", inert.Short(by.Name, 60), row.ID, given, of)
	}
	if asked.Message != "" {
		text += " It is to land as: " + inert.Short(asked.Message, 200)
	}
	said := row
	said.Reason = w.said()
	if err := a.Append(ctx, tx, &said, ledger.Move{By: by, Subject: string(asked.ID), Reason: said.Reason},
		"approved, with others to come", ledger.Now()); err != nil {
		return err
	}
	return a.Origin.Tell(ctx, tx, row, text)
}

// deliberate refuses a yes that is given in passing where the host would change: it is typed out (SM-084), and not at once (SM-912).
func (a *Answers) deliberate(ctx context.Context, tx store.Tx, row change.Row, ref id.Approval, c proposal.Card, by audit.Actor, w Words) (right.Need, error) {
	need, err := a.Entitled(ctx, tx, row.Request, c)
	switch {
	case len(need.No) > 0 && !slices.Contains(need.No, by.Person), by.Kind != "person":
		return need, fmt.Errorf("approve %s: %w", ref,
			problem.Case(person.ErrNotOwner, "sallyport approval show "+string(ref), "%q may not decide about it", by.Name))
	case err != nil || c.Class == "" || !slices.Contains(need.May, by.Person): // no group asked for it, or it is theirs
		return need, err
	}
	again := "sallyport approve " + string(row.ID)
	if need.Typed != "" {
		again += " --typed '" + need.Typed + "'"
	}
	if need.Typed != w.Typed && need.Typed != "" {
		return need, problem.Case(approval.ErrUntyped, again, "%s changes the host, and a yes to that has to be typed out: %s", row.ID, need.Typed)
	}
	asked, err := tx.Approval(ctx, ref)
	if err != nil {
		return need, err
	}
	if left := need.Wait(asked.Asked, ledger.Now()); left > 0 && asked.Decision == approval.Pending {
		return need, problem.Case(approval.ErrEarly, again,
			"%s changes the host, and you alone approve it: read it first. Your yes counts in %s", row.ID, max(left.Round(time.Second), time.Second))
	}
	return need, nil
}
