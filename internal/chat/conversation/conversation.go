// Package conversation says where people and groups talk: a conversation is a place on a platform, and a chat is one group in one
// of its threads. Sessions run for a chat, and messages belong to one.
package conversation

import (
	"context"
	"time"

	"sallyport/internal/base/git"
	"sallyport/internal/base/id"
	"sallyport/internal/port/channel"
	"sallyport/internal/who/group"
)

// Terminal is the platform of who talks at a terminal: the kernel says who they are.
const Terminal = "terminal"

// Dev is that of what a group's agent and the agent that changed what the group runs say to each other; the address is the change.
const Dev = "dev"

// Kind is what a conversation is.
type Kind = channel.Kind

const (
	Direct   = channel.Direct
	Group    = channel.Group
	Threaded = channel.Threaded
)

// Conversation is a place on a platform.
type Conversation struct {
	ID       id.Conversation `json:"id"`
	Platform string          `json:"platform"`
	Address  string          `json:"address"` // as the platform has it
	Kind     Kind            `json:"kind"`
	Name     string          `json:"name"`
	Policy   Policy          `json:"unknown_sender_policy"`
	Created  time.Time       `json:"created"`
}

// Policy is what a conversation does with a sender that nobody knows (CH-050).
type Policy string

const (
	Strict  Policy = "strict"           // they are not heard
	Request Policy = "request_approval" // somebody who may is asked
	Public  Policy = "public"           // they are heard
)

// Valid reports whether it is one of the above.
func (p Policy) Valid() bool { return p == Strict || p == Request || p == Public }

// Channel is an account of the assistant's on a platform. Its name is the platform of its conversations and identities: an account of one
// network is none of another's.
type Channel struct {
	Name       string            `json:"name"`
	Platform   string            `json:"platform"`             // which driver speaks with it
	Settings   map[string]string `json:"settings"`             // no secret
	Credential string            `json:"credential,omitempty"` // file:PATH
	Cursor     string            `json:"-"`                    // from where on the platform goes on
	Added      time.Time         `json:"added"`
}

// Chat is one group in a conversation.
type Chat struct {
	ID           id.Chat         `json:"id"`
	Group        group.Folder    `json:"group"`
	Conversation id.Conversation `json:"conversation"`
	Thread       string          `json:"thread,omitempty"`
	Identity     id.Session      `json:"identity,omitempty"` // of the session that goes on; "" = none yet
	Agent        string          `json:"agent,omitempty"`    // that this identity is one of
	Tree         git.OID         `json:"tree,omitempty"`     // that its last session ran
	Turn         int             `json:"turn"`               // the last that was begun
	Fence        int64           `json:"-"`                  // of the claim that is good: results of an older one count no more
	Tool         *Tool           `json:"tool,omitempty"`     // in flight
	Created      time.Time       `json:"created"`
}

// Tool is a tool in flight (CH-094).
type Tool struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Title    string        `json:"title,omitempty"`
	Started  time.Time     `json:"started"`
	Declared time.Duration `json:"declared,omitempty"` // how long it said that it may take
}

// Tx is what conversations ask of a transaction.
type Tx interface {
	// PutConversation stores one, or returns the one that has its platform and address already, by its new name and kind. Its policy is that of
	// the first time, Request unless it is said.
	PutConversation(ctx context.Context, c Conversation) (Conversation, error)
	// Conversation returns one. Errors: problem.NotFound.
	Conversation(ctx context.Context, id id.Conversation) (Conversation, error)
	// Conversations returns those of a platform, or all for "", by name.
	Conversations(ctx context.Context, platform string) ([]Conversation, error)
	// Lately returns those of a platform that a group hears and where something was said since a time, by name.
	Lately(ctx context.Context, platform string, since time.Time) ([]Conversation, error)
	// SetPolicy gives a conversation another policy.
	SetPolicy(ctx context.Context, id id.Conversation, p Policy) error
	// PutChannel stores one. Errors: problem.Conflict if one has its name.
	PutChannel(ctx context.Context, c Channel) error
	// Channels returns all, by name.
	Channels(ctx context.Context) ([]Channel, error)
	// DropChannel removes one, and with it who is known there, who hears what there, and what waits to leave by it or to be heard there; false
	// if there is none. No channel of the same name finds its conversations.
	DropChannel(ctx context.Context, name string) (bool, error)
	// MoveCursor stores from where on a platform goes on.
	MoveCursor(ctx context.Context, channel, cursor string) error
	// PutChat stores one, or returns the one that has its group, conversation and thread already.
	PutChat(ctx context.Context, c Chat) (Chat, error)
	// Chat returns one. Errors: problem.NotFound.
	Chat(ctx context.Context, id id.Chat) (Chat, error)
	// Chats returns those of a group, or all for "", the newest first.
	Chats(ctx context.Context, of group.Folder) ([]Chat, error)
	// ClaimChat takes a chat from whoever had it, and returns it with its new fence.
	ClaimChat(ctx context.Context, id id.Chat) (Chat, error)
	// MoveChat stores what may change of a chat. Errors: problem.Conflict if its fence is another by now.
	MoveChat(ctx context.Context, c Chat) error
	// DropUnused removes what is left of places of platforms that nobody uses: chats and conversations that were made before a time, that no
	// message, session or question belongs to, and that nobody has said anything about; and whom threads engage of which no message is kept.
	// It returns how many; what is too much at once goes with the next call.
	DropUnused(ctx context.Context, before time.Time) (int64, error)
	// Resident returns the uid of a group's sandboxes; false if it has none yet.
	Resident(ctx context.Context, of group.Folder) (uint32, bool, error)
	// CountResidents returns how many groups have one.
	CountResidents(ctx context.Context) (int, error)
	// PutResident gives a group its uid, once.
	PutResident(ctx context.Context, of group.Folder, uid uint32) error
}
