package land

import (
	"context"
	"fmt"
	"slices"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/grounds"
	"sallyport/internal/path/change"
	"sallyport/internal/path/proposal"
	"sallyport/internal/rule/policy"
)

// unseen says that what a landing would result in holds marks that the person was not shown.
type unseen struct {
	unchecked
	verdict verdict
	why     error
}

func (u *unseen) Error() string { return u.why.Error() }
func (u *unseen) Unwrap() error { return u.why }

// resultMarks computes the marks of the proposed tree, and those that a change has only on the tree that it results in: of a
// repository whose halves come from both sides, and of a name that looks like one that is new on the branch.
func (ls *Landings) resultMarks(ctx context.Context, row change.Row, u *unchecked) (fresh, proposed []policy.Mark, err error) {
	named, err := row.Request.Project.Named(ctx, row.Request.ConfigHome())
	if err != nil {
		return nil, nil, err
	}
	if fresh, err = proposal.Marks(ctx, u.Host, u.Commit, u.Edits, named); err != nil || len(fresh) == 0 {
		return nil, nil, err
	}
	proposed, err = proposal.Marks(ctx, u.Host, u.approved.Commit, u.approved.Edits, named)
	return slices.DeleteFunc(fresh, func(m policy.Mark) bool { return slices.Contains(proposed, m) }), proposed, err
}

// unshown reports whether the card that was approved left out any of the fresh marks of a tree, or whether the home's policy
// wants nobody to be asked about them.
func unshown(p proposal.Proposal, o grounds.Offer, fresh []policy.Mark) bool {
	switch on := p.Card.MarksOn; {
	case len(fresh) == 0:
		return false
	case o.Judging.Rules.Marks == policy.MarksRefuse:
		return true
	case on != nil && on.Tree == o.Tree:
		return false // a card says how many there are beyond those that it has room for
	}
	return slices.ContainsFunc(fresh, func(m policy.Mark) bool { return !slices.Contains(p.Card.Marks, m) })
}

// unseenIn is why a change with fresh marks does not land on its branch as it is now.
func (ls *Landings) unseenIn(row change.Row, u *unchecked, v verdict) error {
	m, more := v.fresh[0], ""
	if len(v.fresh) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(v.fresh)-1)
	}
	text := fmt.Sprintf("on %s as it is now the change does what its card did not show: %s: %s%s", row.Request.Branch, inert.Path(m.Path), m.Says, more)
	if u.Judging.Rules.Marks == policy.MarksRefuse {
		next, words := onward(row)
		return &unseen{*u, v, problem.Errorf(problem.Refused, next, "%s; the home's policy.yaml refuses such a change (marks: refuse); %s", text, words)}
	}
	return &unseen{*u, v, problem.Errorf(problem.Refused, "sallyport approval show "+string(row.ID), "%s; its card shows that now, and asks again", text)}
}

// showMarks puts the fresh marks of what would land on the card, before the others, and what the checks said there. The digest
// names that tree from now on, so that a yes to the card before does not cover them.
func (ls *Landings) showMarks(p *proposal.Proposal, u *unseen) {
	on := &proposal.Ground{Head: u.Base, Tree: u.Tree}
	all := slices.Concat(u.verdict.fresh, u.verdict.proposed)
	p.Card.MarksTotal = len(all)
	p.Card.Marks = all[:min(len(all), proposal.MarksShown)]
	p.Card.MarksWord = u.Judging.Rules.Marks != policy.MarksShow
	p.Card.MarksOn = on
	p.Digest = p.Sum()
	if len(u.verdict.results) > 0 {
		p.Card.Checks, p.Card.ChecksOn = u.verdict.results, on
	}
}
