package wiring

import (
	"context"
	"encoding/json"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/who/group"
)

// About is what somebody has to decide before something that was said is heard.
type About string

const (
	AboutSender  About = "sender"  // may a stranger talk with a group (CH-052)
	AboutChannel About = "channel" // which group is a conversation for (CH-060)
)

// Pending is what was said and waits for a decision.
type Pending struct {
	Question     id.Question
	About        About
	Conversation id.Conversation
	Identity     string       // of a stranger: platform:account, or platform~handle of who has no account
	Group        group.Folder // that a stranger wants
	Sender       string       // a label
	Event        json.RawMessage
	Created      time.Time
}

// Tx is what wirings ask of a transaction.
type Tx interface {
	// PutWiring stores one, in the place of that of its conversation and group.
	PutWiring(ctx context.Context, w Wiring) error
	// DropWiring removes one; false if there is none.
	DropWiring(ctx context.Context, of id.Conversation, g group.Folder) (bool, error)
	// Wirings returns those of a conversation, or all for "", in the order in which they were made.
	Wirings(ctx context.Context, of id.Conversation) ([]Wiring, error)
	// Stick has all that is said in a thread engage a group.
	Stick(ctx context.Context, of id.Conversation, thread string, g group.Folder) error
	// Stuck returns the groups that a thread engages.
	Stuck(ctx context.Context, of id.Conversation, thread string) (map[group.Folder]bool, error)
	// PutPending stores one. Errors: problem.Conflict if its conversation and identity have one already.
	PutPending(ctx context.Context, p Pending) error
	// PendingOf returns that of a conversation and identity; false if there is none.
	PendingOf(ctx context.Context, about About, where id.Conversation, identity string) (Pending, bool, error)
	// PendingQuestions returns the questions about the conversations of a channel, or all for "", oldest first.
	PendingQuestions(ctx context.Context, channel string) ([]id.Question, error)
	// Pending returns that of a question; false if there is none.
	Pending(ctx context.Context, q id.Question) (Pending, bool, error)
	// ReplacePending stores another event of one.
	ReplacePending(ctx context.Context, q id.Question, event json.RawMessage) error
	// DropPending removes one.
	DropPending(ctx context.Context, q id.Question) error
}
