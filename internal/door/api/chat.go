package api

import "time"

// Say says something to a group.
type Say struct {
	Group string `path:"name" json:"-"`
	Text  string `json:"text"`
	// Nonce is this message's own name: saying it again with the same one is saying it once. "" = each is another.
	Nonce string `json:"nonce,omitempty"`
}

// Answer answers a question that the agent of a group has asked: with the number or the label of an option, or in words.
type Answer struct {
	Of   string `path:"name" json:"-"`
	Text string `json:"text"`
}

// WatchChat watches the caller's chat with a group.
type WatchChat struct {
	Group   string `path:"name" json:"-"`
	History int    `json:"history,omitempty"` // messages of before that are told, of each direction, at most 1000
}

// Statuses of a Message.
const (
	MessagePending    = "pending"
	MessageProcessing = "processing"
	MessageCompleted  = "completed"
	MessageFolded     = "folded"
	MessageDead       = "dead"
)

// Lanes of a Sent.
const (
	LaneTalk   = "talk"   // the group's
	LaneNotice = "notice" // the host's
)

// Message is one that reaches a group.
type Message struct {
	ID       string     `json:"id"`
	Chat     string     `json:"chat"`
	Kind     string     `json:"kind"` // chat, task, system, answer
	Sender   string     `json:"sender,omitempty"`
	Agent    bool       `json:"agent,omitempty"` // the sender is one, and no person
	Text     string     `json:"text"`
	At       time.Time  `json:"at"`
	Trigger  bool       `json:"trigger"`
	Status   string     `json:"status"`
	Tries    int        `json:"tries,omitempty"`
	Due      time.Time  `json:"due"`
	Turn     int        `json:"turn,omitempty"` // that it was given in last
	Reason   string     `json:"reason,omitempty"`
	Ended    *time.Time `json:"ended,omitempty"`
	Task     string     `json:"task,omitempty"`
	Repeat   string     `json:"repeat,omitempty"` // as five fields of cron, or an interval
	Zone     string     `json:"zone,omitempty"`   // by whose clock a task has its time
	Question string     `json:"question,omitempty"`
	Decides  string     `json:"decides,omitempty"` // what its words decide, or DecidesNothing: then no agent is told them
	Code     string     `json:"code,omitempty"`    // as Approved has it; only in the answer to who said it
}

// DecidesNothing is what words do that were meant for a card and fit none.
const DecidesNothing = "nothing"

// Sent is a message that leaves a group.
type Sent struct {
	ID       string    `json:"id"`
	Chat     string    `json:"chat"`
	Lane     string    `json:"lane"`
	Turn     int       `json:"turn"`
	Question string    `json:"question,omitempty"` // that it is the card of: its text has the options, numbered
	Text     string    `json:"text"`
	At       time.Time `json:"at"`
	Card     string    `json:"card,omitempty"`   // approval, trial, promote, mount, question; diff is what an approval is about
	Unseen   bool      `json:"unseen,omitempty"` // nobody was told this card before
	Change   string    `json:"change,omitempty"` // that a card is about
	Digits   int       `json:"digits,omitempty"` // a card's name in the chat: said with an answer, the answer fits no other
}

// CardDiff is what an approval is about: it stands before that card.
const CardDiff = "diff"

// Answered is a message with what answered it.
type Answered struct {
	Message
	Answer []Sent `json:"answer"` // what was sent in the turn that it was answered in; empty while it is not
}

// InFlight is a tool that an agent uses now.
type InFlight struct {
	Name       string    `json:"name"`
	Title      string    `json:"title,omitempty"`
	Started    time.Time `json:"started"`
	DeclaredMS int64     `json:"declared_ms,omitempty"` // how long it said that it may take
}

// Kinds of a ChatLine.
const (
	ChatIn    = "in"    // a message, as it stands now
	ChatOut   = "out"   // what was sent
	ChatReady = "ready" // what was there before has been told
	ChatTurn  = "turn"  // a turn has begun
	ChatSaid  = "said"  // a piece of what the agent says; ChatOut has it whole, once it is sent
	ChatTool  = "tool"  // a tool is in flight, or none any more
	ChatBeat  = "beat"  // nothing has happened
)

// ChatLine is one line of a chat that is watched.
type ChatLine struct {
	Kind string    `json:"kind"`
	At   time.Time `json:"at,omitzero"`
	In   *Message  `json:"in,omitempty"`
	Out  *Sent     `json:"out,omitempty"`
	Turn int       `json:"turn,omitempty"`
	Text string    `json:"text,omitempty"`
	Tool *InFlight `json:"tool,omitempty"`
}

// Messages chooses messages.
type Messages struct {
	Group  string   `json:"group,omitempty" is:"group"` // "" = all
	Status []string `json:"status,omitempty"`           // nil = all
	Limit  int      `json:"limit,omitempty"`            // the newest; 0 = 100
}

// Drop is how many events of the last 7 days were dropped for a reason, before they were messages.
type Drop struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// Chat is a group in a conversation.
type Chat struct {
	ID           string     `json:"id"`
	Group        string     `json:"group"`
	Conversation string     `json:"conversation"`
	Platform     string     `json:"platform"`
	Session      string     `json:"session,omitempty"` // identity; "" = none has run yet
	Agent        string     `json:"agent,omitempty"`
	Tree         string     `json:"tree,omitempty"` // that its last session ran
	Turns        int        `json:"turns"`
	Live         bool       `json:"live"`    // a session runs
	Working      bool       `json:"working"` // a turn is under way
	Tool         *InFlight  `json:"tool,omitempty"`
	Waiting      int        `json:"waiting"` // messages that wake the agent; what only goes along is none
	Dead         int        `json:"dead"`
	Last         *time.Time `json:"last,omitempty"` // message in
	Created      time.Time  `json:"created"`
}

// InGroup narrows to one group.
type InGroup struct {
	Group string `json:"group,omitempty" is:"group"` // "" = all
}

// Stopped says whether a session was ended.
type Stopped struct {
	Stopped bool `json:"stopped"` // false: none ran
}

// Forgotten is what a chat goes on without.
type Forgotten struct {
	Chat    string `json:"chat"`
	Session string `json:"session"` // the identity that it had; "" = none has run
}

// Plan schedules a task for a group, in the caller's chat with it.
type Plan struct {
	Group    string `path:"name" json:"-"`
	Text     string `json:"text"`
	At       string `json:"at,omitempty"`       // the first time, by the user's clock
	Cron     string `json:"cron,omitempty"`     // five fields, by the user's clock
	Interval string `json:"interval,omitempty"` // such as 90m or 24h
}
