package api

import (
	"time"

	"sallyport/internal/chat/conversation"
)

// CheckChannel refuses what is no name of a channel. Errors: problem.Usage.
func CheckChannel(name string) error {
	_, err := conversation.ParseName(name)
	return err
}

// NewChannel asks for a channel.
type NewChannel struct {
	Name       string            `json:"name"`
	Platform   string            `json:"platform"`
	Settings   map[string]string `json:"settings,omitempty"`   // no secret
	Credential string            `json:"credential,omitempty"` // file:PATH, absolute; "" = none
}

// How a channel stands.
const (
	ChannelConnecting = "connecting" // its first session is being made
	ChannelConnected  = "connected"
	ChannelAway       = "away" // there is no session; it is tried again
)

// Channel is one as it stands.
type Channel struct {
	Name       string            `json:"name"`
	Platform   string            `json:"platform"`
	Settings   map[string]string `json:"settings"`
	Credential string            `json:"credential,omitempty"` // where it is, and never what it is
	Added      time.Time         `json:"added"`
	Status     string            `json:"status"`
	Since      time.Time         `json:"since,omitzero"`
	Account    string            `json:"account,omitempty"` // the assistant's, as the platform calls it
	Reason     string            `json:"reason,omitempty"`  // why there is no session
	Lost       *time.Time        `json:"lost,omitempty"`    // when something that was said could last not be had any more, since the daemon began
	LostIn     string            `json:"lost_in,omitempty"` // the place of it; "" = anywhere
	Waiting    int               `json:"waiting"`           // messages that are to leave by it
	Sent       int               `json:"sent"`
	Dead       int               `json:"dead"`
	Failed     int               `json:"dead_last_day"`
	Newest     []Undelivered     `json:"newest_dead"` // the newest first
}

// Undelivered is a message that will not arrive.
type Undelivered struct {
	Message      string     `json:"message"`
	Conversation string     `json:"conversation"`
	Reason       string     `json:"reason"`
	Ended        *time.Time `json:"ended,omitempty"`
}

// Removed counts what went with a channel.
type Removed struct {
	Name    string `json:"name"`
	Wirings int    `json:"wirings"`
	Waiting int    `json:"waiting"` // messages that will not be sent any more
}

// OfChannel chooses conversations.
type OfChannel struct {
	Channel string `json:"channel,omitempty" is:"channel"` // "" = all
}

// Conversation is a place on a platform, with the groups that hear it.
type Conversation struct {
	ID      string    `json:"id"`
	Channel string    `json:"channel"`
	Address string    `json:"address"`
	Kind    string    `json:"kind"` // direct, group, threaded
	Name    string    `json:"name"`
	Policy  string    `json:"unknown_sender_policy"` // strict, request_approval, public
	Wirings []Wiring  `json:"wirings"`
	Created time.Time `json:"created"`
}

// Wiring has a group hear a conversation.
type Wiring struct {
	Group   string `json:"group"`
	Mode    string `json:"engage_mode"` // pattern, mention, mention-sticky
	Pattern string `json:"engage_pattern,omitempty"`
	Scope   string `json:"sender_scope"`           // all, known
	Ignored string `json:"ignored_message_policy"` // drop, accumulate
	Problem string `json:"problem,omitempty"`      // why it engages on nothing
}

// SetWiring has a group hear a conversation. What is not said stays, or is as the kind of the conversation wants it.
type SetWiring struct {
	Conversation string `path:"name" json:"-"`
	Group        string `json:"group"`
	Mode         string `json:"engage_mode,omitempty"`
	Pattern      string `json:"engage_pattern,omitempty"`
	Scope        string `json:"sender_scope,omitempty"`
	Ignored      string `json:"ignored_message_policy,omitempty"`
}

// DropWiring has a group hear a conversation no more.
type DropWiring struct {
	Conversation string `path:"name" json:"-"`
	Group        string `json:"group"`
}

// SetPolicy says what becomes of strangers in a conversation.
type SetPolicy struct {
	Conversation string `path:"name" json:"-"`
	Policy       string `json:"unknown_sender_policy"`
}

// OldWirings are rows of older data.
type OldWirings struct {
	Rows []OldWiring `json:"rows"`
}

// OldWiring is one, in columns that do not exist any more.
type OldWiring struct {
	Conversation string `json:"conversation"` // an id, or CHANNEL:ADDRESS
	Group        string `json:"group"`
	Scope        string `json:"response_scope"`          // all, triggered, allowlisted
	Rules        string `json:"trigger_rules,omitempty"` // a pattern; "" = none
}
