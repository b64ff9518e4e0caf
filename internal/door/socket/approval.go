package socket

import (
	"context"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/approve"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
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

func (s *Server) approvals(ctx context.Context, _ audit.Actor, in api.Waiting) ([]api.Approval, error) {
	rows, err := s.Approvals.Approvals(ctx, in.Pending)
	return each(rows, approvalOf), err
}

func (s *Server) approval(ctx context.Context, _ audit.Actor, ref string) (api.Question, error) {
	a, p, err := s.Approvals.Approval(ctx, ref)
	return api.Question{Approval: approvalOf(a), Proposal: proposalOf(p)}, err
}

func (s *Server) approve(ctx context.Context, by audit.Actor, in api.Approve) (out api.Nothing, err error) {
	if in.Digest == "" {
		return out, problem.Errorf(problem.Usage, "sallyport approval show "+in.Of, "approving %s needs the digest that was read", in.Of)
	}
	return out, s.Approvals.Approve(ctx, id.Approval(in.Of), proposal.Digest(in.Digest), by,
		approve.Words{Via: in.Via, Message: in.Message, Unsigned: in.Unsigned, Marked: in.Marked})
}

func (s *Server) refuse(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, s.Approvals.Refuse(ctx, id.Approval(in.Of), by, in.Reason)
}
