package socket

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/drive/approve"
	"sallyport/internal/drive/dispatch"
	"sallyport/internal/path/approval"
	"sallyport/internal/path/proposal"
	"sallyport/internal/path/request"
	"sallyport/internal/who/question"
)

// Approvals is what a person is asked, and takes what they say.
type Approvals interface {
	Approvals(ctx context.Context, pendingOnly bool, limit int) ([]approval.Approval, error)
	// Requested returns what was asked for with changes.
	Requested(ctx context.Context, of []id.Change) (map[id.Change]request.Request, error)
	// Approval returns one with its proposal; ref is an approval id or the id of a change with one.
	Approval(ctx context.Context, ref string) (approval.Approval, proposal.Proposal, error)
	// AskedOf is the group whose change an approval, or that of a change, is about, if by may answer it at this moment; "" otherwise.
	AskedOf(ctx context.Context, ref string, by audit.Actor) (group string, err error)
	// Approve records by's yes to exactly the digest they read, with what they have the commit say; exactly once.
	Approve(ctx context.Context, ref id.Approval, read proposal.Digest, by audit.Actor, w approve.Words) error
	// GiveCode has hand hand over to by the code of the change of the host that their yes has let land; false if there is none for them.
	GiveCode(ctx context.Context, ref id.Approval, by audit.Actor, hand func(of id.Change, plain string) (where string, err error)) bool
	Refuse(ctx context.Context, ref id.Approval, by audit.Actor, reason string) error
	// Rework has the agent of a group's change go on with what by wants different in it.
	Rework(ctx context.Context, ref id.Approval, by audit.Actor, via, words string) error
}

// approvals answers what a person is asked, and takes what they say.
type approvals struct {
	part   Approvals
	places Places // nil: nobody speaks on a platform
}

// list has what is asked about strangers and places among it (CH-058).
func (n approvals) list(ctx context.Context, _ audit.Actor, in api.Waiting) ([]api.Approval, error) {
	limit := min(in.Limit, listMax)
	rows, err := n.ofChanges(ctx, in.Pending, limit)
	if err != nil || n.places == nil {
		return rows, err
	}
	asked, err := n.places.Waiting(ctx)
	if err == nil && !in.Pending {
		var before []question.Question
		before, err = n.places.Answered(ctx, limit)
		asked = append(asked, before...)
	}
	all := append(each(asked, admissionOf), rows...)
	slices.SortStableFunc(all, func(a, b api.Approval) int { return b.Asked.Compare(a.Asked) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, err
}

// ofChanges lists the approvals of changes, each with what was asked for and where.
func (n approvals) ofChanges(ctx context.Context, pending bool, limit int) ([]api.Approval, error) {
	rows, err := n.part.Approvals(ctx, pending, limit)
	if err != nil {
		return nil, err
	}
	requested, err := n.part.Requested(ctx, each(rows, func(a approval.Approval) id.Change { return a.Change }))
	return each(rows, func(a approval.Approval) api.Approval {
		out, r := approvalOf(a), requested[a.Change]
		out.Wish, out.Repo, out.Branch = text(wishOf(r)), text(r.Project.Top), r.Branch
		return out
	}), err
}

// wishOf is the first line of what was asked for; that of a group's agent is quoted (SM-908).
func wishOf(r request.Request) string {
	first, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
	if r.Dev != "" {
		return fmt.Sprintf("%s asks: %q", r.Group, first)
	}
	return first
}

// admissionOf is a question about a stranger or a place as a row of what waits, or was answered.
func admissionOf(q question.Question) api.Approval {
	out := api.Approval{
		ID: string(q.ID), Kind: string(q.Kind), Asked: q.Asked, Decision: string(approval.Pending),
		Wish: text(strings.Join(append([]string{q.Card.Title}, q.Card.Lines[:min(len(q.Card.Lines), 1)]...), " ")),
	}
	out.Reason = out.Wish // as earlier programs read it
	switch {
	case q.Outcome == question.Waiting:
		return out
	case q.Answer == nil:
		out.Decision, out.Reason = string(approval.Void), text(q.Reason)
		return out
	}
	out.Decision = string(approval.Approved)
	chosen, _ := q.Option(q.Answer.Option)
	if chosen.Alone {
		out.Decision = string(approval.Refused)
	}
	by := actorOf(q.Answer.By)
	out.By, out.At, out.Via, out.Reason = &by, &q.Answer.At, q.Answer.Via, text(chosen.Label)
	return out
}

// admitting is what such a question asks, and what it is answered with.
func admitting(q question.Question) *api.Admission {
	out := &api.Admission{Lines: []string{text(q.Card.Title)}}
	for _, line := range q.Card.Lines {
		out.Lines = append(out.Lines, text(line))
	}
	out.Options = each(q.Options, func(o question.Option) api.Choice {
		return api.Choice{Key: o.Key, Label: text(o.Label), No: o.Alone, Named: o.Key == dispatch.CreateNew}
	})
	return out
}

// answer answers one, whoever else was asked.
func (n approvals) answer(ctx context.Context, by audit.Actor, in api.Answer) (out api.Admitted, err error) {
	if n.places == nil {
		return out, noPlaces(in.Of)
	}
	told, err := n.places.Answer(ctx, id.Question(in.Of), in.Text, by)
	return api.Admitted{Told: text(told)}, err
}

// noPlaces says that nobody is asked about strangers.
func noPlaces(of string) error {
	return problem.Errorf(problem.NotFound, "sallyport channel list", "there is no question %q: this daemon speaks with no platform", of)
}

func (n approvals) show(ctx context.Context, _ audit.Actor, ref string) (api.Question, error) {
	if id.KindOf(ref) == "question" {
		if n.places == nil {
			return api.Question{}, noPlaces(ref)
		}
		q, err := n.places.Question(ctx, id.Question(ref))
		if err != nil {
			return api.Question{}, err
		}
		return api.Question{Approval: admissionOf(q), Admission: admitting(q)}, nil
	}
	a, p, err := n.part.Approval(ctx, ref)
	return api.Question{Approval: approvalOf(a), Proposal: proposalOf(p)}, err
}

func (n approvals) approve(ctx context.Context, by audit.Actor, in api.Approve) (out api.Approved, err error) {
	if in.Digest == "" {
		return out, problem.Errorf(problem.Usage, "sallyport approval show "+in.Of, "approving %s needs the digest that was read", in.Of)
	}
	err = n.part.Approve(ctx, id.Approval(in.Of), proposal.Digest(in.Digest), by,
		approve.Words{Via: approval.ViaCommandLine, Message: in.Message, Unsigned: in.Unsigned, Marked: in.Marked, Typed: in.Typed})
	if err == nil {
		out.Code = codeFor(ctx, n.part, id.Approval(in.Of), by, "at the command line")
	}
	return out, err
}

// codeFor is the code of the change that the yes of by has let land, to be handed over where they said it; "" if there is none for them.
func codeFor(ctx context.Context, part Approvals, ref id.Approval, by audit.Actor, where string) (code string) {
	part.GiveCode(ctx, ref, by, func(_ id.Change, plain string) (string, error) {
		code = plain
		return where, nil
	})
	return code
}

func (n approvals) refuse(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, n.part.Refuse(ctx, id.Approval(in.Of), by, in.Reason)
}

func (n approvals) rework(ctx context.Context, by audit.Actor, in api.Reason) (out api.Nothing, err error) {
	return out, n.part.Rework(ctx, id.Approval(in.Of), by, approval.ViaCommandLine, in.Reason)
}
