// Package approval is who said what to which digest, and who may: a question of kind swap, bound to a proposal.
package approval

import (
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/proposal"
	"sallyport/internal/who/question"
)

// Decision is where an approval stands.
type Decision string

const (
	Pending  Decision = "pending"
	Approved Decision = "approved"
	Refused  Decision = "refused"
	Reworked Decision = "reworked" // something else is wanted: whoever proposed it goes on, and proposes again
	Void     Decision = "void"     // what it was bound to has changed; asked again, or the change ended
)

// The options of the question. One no is enough, and so is one who wants something else; that is asked only where an agent goes on.
var options = []question.Option{
	{Key: "approve", Label: "approve"}, {Key: "refuse", Label: "refuse", Alone: true}, {Key: "change", Label: "have it changed first", Alone: true},
}

// keys are the options that decide.
var keys = map[Decision]string{Approved: options[0].Key, Refused: options[1].Key, Reworked: options[2].Key}

// Reworks reports whether a question may be answered with what is wanted in the place of what was proposed.
func Reworks(q question.Question) bool {
	_, may := q.Option(keys[Reworked])
	return q.Kind == question.Swap && may
}

// Of returns a as its question tells it: what was asked, and how it ended.
func (a Approval) Of(q question.Question) Approval {
	a.Question, a.Kind, a.Digest, a.Asked, a.Decision = q.ID, q.Kind, proposal.Digest(q.Digest), q.Asked, decided(q.Outcome)
	a.By, a.At, a.Via, a.Reason = nil, q.Ended, "", q.Reason
	switch {
	case q.Answer != nil:
		a.By, a.Via, a.Reason = &q.Answer.By, q.Answer.Via, q.Answer.Text
	case q.Outcome != question.Waiting:
		host := audit.Host
		a.By = &host
	}
	return a
}

// decided is the decision that an outcome of the question is. One that is not known is no yes.
func decided(o question.Outcome) Decision {
	switch o {
	case question.Waiting:
		return Pending
	case question.Void:
		return Void
	}
	for d, key := range keys {
		if string(o) == key {
			return d
		}
	}
	return Decision(o)
}

// ErrDecided refuses a second decision.
var ErrDecided = problem.New(problem.Conflict, "the approval was decided already")

// ErrMarked refuses a yes that does not say that it covers what is marked.
var ErrMarked = problem.New(problem.Refused, "the card has marks that this yes does not cover")

// ErrUntyped refuses a yes without the words that the card wants typed.
var ErrUntyped = problem.New(problem.Refused, "the card wants a yes that is typed out")

// ErrEarly refuses a yes before the time to think is over.
var ErrEarly = problem.New(problem.Refused, "the card wants to be thought about first")

// ErrOwn refuses a yes of who asked for it, where the policy wants another's.
var ErrOwn = problem.New(problem.Refused, "nobody approves what they asked for")

// ErrSaid answers somebody who repeats what they decided: it holds, and nothing happens again.
var ErrSaid = problem.New(problem.Conflict, "the same was decided already")

// Approval is a durable request for a human decision. It waits until answered (SM-911).
type Approval struct {
	ID       id.Approval     `json:"id"`
	Question id.Question     `json:"question"` // that people answer; the decision, by whom, when and why are its outcome
	Change   id.Change       `json:"change"`
	Kind     question.Kind   `json:"kind"` // swap
	Proposal int             `json:"proposal"`
	Digest   proposal.Digest `json:"digest"`
	Asked    time.Time       `json:"asked"`
	Decision Decision        `json:"decision"`
	By       *audit.Actor    `json:"by,omitempty"`
	At       *time.Time      `json:"at,omitempty"`
	Via      string          `json:"via,omitempty"` // "command line", "pre-approved by flag"
	Reason   string          `json:"reason,omitempty"`
	Message  string          `json:"message,omitempty"`  // of a yes: what the commit is to say, in place of what the card shows
	Unsigned bool            `json:"unsigned,omitempty"` // of a yes: it may land unsigned
}
