package socket

import (
	"context"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/approve"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/who/question"
)

// Approvals is what a person is asked, and takes what they say.
type Approvals interface {
	Approvals(ctx context.Context, pendingOnly bool) ([]approval.Approval, error)
	// Approval returns one with its proposal; ref is an approval id or the id of a change with one.
	Approval(ctx context.Context, ref string) (approval.Approval, proposal.Proposal, error)
	// Approve records by's yes to exactly the digest they read, with what they have the commit say; exactly once.
	Approve(ctx context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, w approve.Words) error
	Refuse(ctx context.Context, ref id.Approval, by audit.Actor, reason string) error
}

// approvals answers what a person is asked, and takes what they say.
type approvals struct {
	part   Approvals
	places Places // nil: nobody speaks on a platform
}

// list has what waits about strangers and places among it (CH-058).
func (n approvals) list(ctx context.Context, _ audit.Actor, in api.Waiting) ([]api.Approval, error) {
	rows, err := n.part.Approvals(ctx, in.Pending)
	if err != nil || n.places == nil {
		return each(rows, approvalOf), err
	}
	open, err := n.places.Waiting(ctx)
	all := append(each(open, admissionOf), each(rows, approvalOf)...)
	slices.SortStableFunc(all, func(a, b api.Approval) int { return b.Asked.Compare(a.Asked) })
	return all, err
}

// admissionOf is a question about a stranger or a place as a row of what waits.
func admissionOf(q question.Question) api.Approval {
	return api.Approval{
		ID: string(q.ID), Kind: string(q.Kind), Asked: q.Asked, Decision: api.Pending,
		Reason: text(strings.Join(append([]string{q.Card.Title}, q.Card.Lines[:min(len(q.Card.Lines), 1)]...), " ")),
	}
}

func (n approvals) show(ctx context.Context, _ audit.Actor, ref string) (api.Question, error) {
	a, p, err := n.part.Approval(ctx, ref)
	return api.Question{Approval: approvalOf(a), Proposal: proposalOf(p)}, err
}

func (n approvals) approve(ctx context.Context, by audit.Actor, in api.Approve) (out api.Nothing, err error) {
	if in.Digest == "" {
		return out, problem.Errorf(problem.Usage, "sallyport approval show "+in.Of, "approving %s needs the digest that was read", in.Of)
	}
	return out, n.part.Approve(ctx, id.Approval(in.Of), proposal.Digest(in.Digest), by,
		approve.Words{Via: in.Via, Message: in.Message, Unsigned: in.Unsigned, Marked: in.Marked, Typed: in.Typed})
}

func (n approvals) refuse(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, n.part.Refuse(ctx, id.Approval(in.Of), by, in.Reason)
}
