package message

import (
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/decide"
)

// Card is what a message shows beside words.
type Card string

const (
	CardApproval  Card = "approval"  // may a change land
	CardTrial     Card = "trial"     // message 1: is what landed to stay
	CardPromote   Card = "promote"   // is the template to have it too
	CardMount     Card = "mount"     // may the agent write in a folder that it is to be shown
	CardQuestion  Card = "question"  // of the agent's
	CardAdmission Card = "admission" // may a stranger talk with a group, or which group is a conversation for
	CardDiff      Card = "diff"      // what an approval is about
)

// Asks reports whether a card waits for an answer.
func (c Card) Asks() bool { return c != "" && c != CardDiff }

// Host reports whether a card is the host's own, and asks: what answers it decides what runs.
func (c Card) Host() bool { return c.Asks() && c != CardQuestion }

// Decision is what a person's words do to a card. The row of the message that has it is the decision: what it says is done once, also if
// the host ends in between.
type Decision struct {
	Kind   decide.Kind `json:"kind"`
	Does   decide.Does `json:"does,omitempty"`
	Card   id.Out      `json:"card,omitempty"`
	Asks   Card        `json:"asks,omitempty"`
	Change id.Change   `json:"change,omitempty"`

	Approval id.Approval  `json:"approval,omitempty"`
	Digest   string       `json:"digest,omitempty"` // of the proposal that the card showed
	Question id.Question  `json:"question,omitempty"`
	Option   string       `json:"option,omitempty"`
	By       audit.Actor  `json:"by"`                // whose words they are, as a door recognized them
	Problem  problem.Kind `json:"problem,omitempty"` // why it was not done; "" = it was, or waits
}

// Open reports whether a decision is to be carried out.
func (m In) Open() bool { return m.Decides != nil && m.Status == Processing }

// Closed returns m as a decision that came to its end, and what was said of it.
func (m In) Closed(said string, at time.Time) In {
	m.Status, m.Reason, m.Ended = Completed, said, &at
	return m
}
