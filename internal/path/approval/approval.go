// Package approval is who said what to which digest, and who may.
package approval

import (
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/proposal"
)

// Decision is where an approval stands.
type Decision string

const (
	Pending  Decision = "pending"
	Approved Decision = "approved"
	Refused  Decision = "refused"
	Void     Decision = "void" // what it was bound to has changed; asked again, or the change ended
)

// ErrDecided refuses a second decision.
var ErrDecided = problem.New(problem.Conflict, "the approval was decided already")

// ErrMarked refuses a yes that does not say that it covers what is marked.
var ErrMarked = problem.New(problem.Refused, "the card has marks that this yes does not cover")

// ErrSaid answers somebody who repeats what they decided: it holds, and nothing happens again.
var ErrSaid = problem.New(problem.Conflict, "the same was decided already")

// Approval is a durable request for a human decision. It waits until answered (SM-911).
type Approval struct {
	ID       id.Approval     `json:"id"`
	Change   id.Change       `json:"change"`
	Kind     string          `json:"kind"` // swap
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
