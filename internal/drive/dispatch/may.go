package dispatch

import (
	"context"
	"slices"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/ledger"
	"sallyport/internal/rule/right"
	"sallyport/internal/store"
	"sallyport/internal/who/question"
)

// may reports whether somebody may answer a question at this moment, with a no at the least.
func (d decider) may(ctx context.Context, tx store.Tx, q question.Question, by audit.Actor) (bool, error) {
	if by.Kind != "person" || by.Person == "" {
		return false, nil
	}
	if admits(q) {
		if d.Admissions == nil {
			return false, nil
		}
		return d.Admissions.May(ctx, tx, q, by)
	}
	need, err := d.need(ctx, tx, q)
	return slices.Contains(need.No, by.Person), err
}

// need says who answers a question: about a change whoever approves it, about what an agent wants to know whom its group
// knows, and about all else the owner. A question about a stranger or a place ends by admit alone, which does what the answer says.
func (d decider) need(ctx context.Context, tx store.Tx, q question.Question) (right.Need, error) {
	switch {
	case admits(q):
		return right.Need{}, problem.Errorf(problem.Internal, "sallyport approval show "+string(q.ID),
			"%s is about a stranger or a place, and is answered as such", q.ID)
	case q.Kind == question.Swap:
		return d.approvers(ctx, tx, id.Change(q.Subject))
	case q.Kind == question.Promote && d.Changes != nil:
		return d.Changes.Promoters(ctx, tx, id.Change(q.Subject))
	case q.Kind == question.Mount && d.Changes != nil:
		return d.Changes.Shows(ctx, tx, id.Change(q.Subject))
	case q.Kind == question.MountOther:
		return d.Owner.Need(), nil
	}
	chat, err := tx.Chat(ctx, id.Chat(q.Subject))
	if problem.KindOf(err) == problem.NotFound {
		return d.Owner.Need(), nil
	}
	if err != nil {
		return right.Need{}, err
	}
	all, err := ledger.Entitled(ctx, tx)
	var known []id.Person
	for _, p := range all {
		if p.Of(string(chat.Group)) {
			known = append(known, p.ID)
		}
	}
	return right.Only(known...), err
}

// approvers are who decides about a change at this moment. Why nobody can say yes is told to whoever tries.
func (d decider) approvers(ctx context.Context, tx store.Tx, of id.Change) (right.Need, error) {
	row, err := tx.Change(ctx, of)
	if err != nil {
		return right.Need{}, err
	}
	p, ok, err := tx.Proposal(ctx, of)
	if err != nil || !ok || d.Changes == nil {
		return d.Owner.Need(), err
	}
	need, err := d.Changes.Entitled(ctx, tx, row.Request, p.Card)
	if len(need.No) > 0 {
		err = nil
	}
	return need, err
}
