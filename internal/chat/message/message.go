// Package message says what becomes of what is said: each message that was accepted is a row, and ends as answered, folded into a
// turn that was, or dead with a reason that its sender is told (CH-901).
package message

import (
	"context"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/prompt"
	"sallyport/internal/chat/schedule"
	"sallyport/internal/rule/stuck"
	"sallyport/internal/who/group"
)

// Status is where a message stands.
type Status string

const (
	Pending    Status = "pending"    // it waits until it is due
	Processing Status = "processing" // an agent has it in its turn
	Completed  Status = "completed"  // that turn is over, and what it said is sent
	Folded     Status = "folded"     // it stood before those that a completed turn was shown, and was counted (CH-014b)
	Dead       Status = "dead"       // it was tried often enough (CH-102), or a person stopped it
)

// In is a message that reaches a group.
type In struct {
	Seq      int64        `json:"-"`
	ID       id.Message   `json:"id"`
	Chat     id.Chat      `json:"chat"`
	Intake   int64        `json:"-"` // 0 = the host's own
	Kind     prompt.Kind  `json:"kind"`
	Trigger  bool         `json:"trigger"`            // it wakes; without, it is context (CH-006)
	Identity string       `json:"identity,omitempty"` // of the sender, platform:account
	Sender   string       `json:"sender,omitempty"`   // a label: shown, never compared
	Text     string       `json:"text"`
	ReplyTo  string       `json:"reply_to,omitempty"`
	Quote    prompt.Quote `json:"quote,omitzero"`
	Question string       `json:"question,omitempty"` // that it answers
	At       time.Time    `json:"at"`                 // received, by our clock

	Status     Status             `json:"status"`
	Tries      int                `json:"tries,omitempty"`
	Due        time.Time          `json:"due"`
	Fence      int64              `json:"-"`              // of the claim that has it, or had it last
	Turn       int                `json:"turn,omitempty"` // that it was given in last
	First      int                `json:"-"`              // turn that it was given in first: the calls of its later tries are known by it
	Reason     string             `json:"reason,omitempty"`
	Ended      *time.Time         `json:"ended,omitempty"`
	Task       id.Task            `json:"task,omitempty"`
	Recurrence *schedule.Schedule `json:"recurrence,omitempty"`
	Decides    *Decision          `json:"decides,omitempty"` // nil = it is said to the agent; else no agent sees it
}

// AgentPlatform begins the identity of a sender that is an agent, and no person.
const AgentPlatform = "agent:"

// OfAgent reports whether an agent said it.
func (m In) OfAgent() bool { return strings.HasPrefix(m.Identity, AgentPlatform) }

// Valid reports whether it is one of the above.
func (s Status) Valid() bool {
	switch s {
	case Pending, Processing, Completed, Folded, Dead:
		return true
	}
	return false
}

// Lane keeps what a group says apart from what the host says of it.
type Lane string

const (
	Talk   Lane = "talk"
	Notice Lane = "notice"
)

// Out is a message that leaves a group.
type Out struct {
	Seq      int64       `json:"seq"`
	ID       id.Out      `json:"id"`
	Chat     id.Chat     `json:"chat"`
	Lane     Lane        `json:"lane"`
	Turn     int         `json:"turn"`
	Number   int         `json:"number"`             // within its turn and lane, from 1
	Call     string      `json:"-"`                  // the tool call that sent it: the same call sends once
	Question id.Question `json:"question,omitempty"` // that it is the card of
	Text     string      `json:"text"`
	At       time.Time   `json:"at"`

	Card      Card       `json:"card,omitempty"`
	Change    id.Change  `json:"change,omitempty"` // that the card is about
	Digits    int        `json:"digits,omitempty"` // of a card that asks: its name in the chat, given when it is stored
	Delivered *time.Time `json:"delivered,omitempty"`
}

// Rows are messages as a transaction left them, in the order in which it wrote them: one that it moved twice is in it twice.
type Rows struct {
	Ins  []In
	Outs []Out
}

// Intake is what a platform handed over.
type Intake struct {
	Seq          int64
	Conversation id.Conversation
	PlatformID   string // the same one is the same event; "" = the platform has none
	Received     time.Time
	Outcome      Outcome
	Reason       string // of a drop (CH-906)
}

// Outcome is what became of an intake.
type Outcome string

const (
	Stored  Outcome = "stored"
	Dropped Outcome = "dropped"
)

// Drop is how many events were dropped for a reason.
type Drop struct {
	Reason string
	Count  int
}

const (
	// TextBytesMax is the longest text that is accepted.
	TextBytesMax = 256 << 10
	// IntakeKept is how long an intake is kept, so that an event which comes again is known (CH-115).
	IntakeKept = 7 * 24 * time.Hour
	// Kept is how long a message is kept that has come to its end, and what was sent (CH-115).
	Kept = 90 * 24 * time.Hour
)

// ErrMoved says that a row is not as it was read: another has it.
var ErrMoved = problem.New(problem.Conflict, "the message has moved on")

// Filter chooses messages.
type Filter struct {
	Chat   id.Chat      // "" = all
	Group  group.Folder // "" = all
	Status []Status     // none = all
	After  int64        // seq
	Task   id.Task
	Tasks  bool      // only those that a schedule made
	Wakes  bool      // only those that wake
	Fills  bool      // only context
	Due    time.Time // without tasks that are planned for later than that; zero = with them
	Newest bool      // the newest Limit, still oldest first
	Limit  int       // 0 = 1000
}

// Folding is the turn that messages were only counted in.
type Folding struct {
	Turn  int
	Fence int64
	At    time.Time
}

// Tx is what messages ask of a transaction.
type Tx interface {
	DeliveryTx
	// AddIntake stores one; false if the conversation has one of that platform id already, which is returned.
	AddIntake(ctx context.Context, i Intake) (Intake, bool, error)
	// DropIntake writes down that nothing became of an intake, and why (CH-906).
	DropIntake(ctx context.Context, seq int64, reason string) error
	// CountDrop counts an intake of which nothing became with one that was dropped before for the same reason, and keeps no row of it; false if
	// there is no such other one. It may come again, then, and be another.
	CountDrop(ctx context.Context, seq, with int64, reason string) (bool, error)
	// DropIntakes removes those received before a time, and returns how many.
	DropIntakes(ctx context.Context, before time.Time) (int64, error)
	// CountDrops counts what was handed over and dropped, by reason, the most first; of as long as intakes are kept (CH-906).
	CountDrops(ctx context.Context) ([]Drop, error)
	// PutIn stores a new message, and returns it with its number.
	PutIn(ctx context.Context, m In) (In, error)
	// In returns one. Errors: problem.NotFound.
	In(ctx context.Context, id id.Message) (In, error)
	// InOf returns what came of an intake in a chat; false if nothing did.
	InOf(ctx context.Context, chat id.Chat, intake int64) (In, bool, error)
	// Ins returns those that a filter chooses, oldest first.
	Ins(ctx context.Context, f Filter) ([]In, error)
	// MoveIn stores what may change of a message whose status and fence are still as given. Errors: ErrMoved.
	MoveIn(ctx context.Context, from Status, fence int64, m In) error
	// CountContext counts the chat messages of a chat that wait, wake nobody and stand before a number.
	CountContext(ctx context.Context, chat id.Chat, before int64) (int, error)
	// FoldContext folds these into a turn that was completed under a fence. Nobody waits for one of them, so who watches is not told of each.
	FoldContext(ctx context.Context, chat id.Chat, before int64, turn Folding) error
	// TakeContext has the chat of a thread take over what waits in its group's chat of no thread there, and wakes nobody.
	TakeContext(ctx context.Context, to conversation.Chat) error
	// DueChats returns the chats that something waits for which wakes and is due, the longest due first.
	DueChats(ctx context.Context, now time.Time) ([]id.Chat, error)
	// NextDueChat returns when the next message that wakes falls due after a time; false if none will.
	NextDueChat(ctx context.Context, after time.Time) (time.Time, bool, error)
	// WaitingUntil returns those that wake and fall due after a time, the last first: no task whose time has not come.
	WaitingUntil(ctx context.Context, after time.Time) ([]In, error)
	// PutOut stores one with the next number of its turn and lane, and returns it. One of a call that has sent already is returned as it was.
	PutOut(ctx context.Context, o Out) (Out, error)
	// Outs returns those of a chat after a number, oldest first; with turn > 0 of that turn alone.
	Outs(ctx context.Context, chat id.Chat, after int64, turn, limit int) ([]Out, error)
	// NewestOuts returns the newest of a chat, still oldest first.
	NewestOuts(ctx context.Context, chat id.Chat, limit int) ([]Out, error)
	// Cards returns those of the host's in a conversation that wait for their answer, and the newest that ask something: so many about a change,
	// and as many about all else, oldest first. Nothing that agents and strangers have asked pushes out what waits. Their digits are the
	// conversation's own; what waits shares them with none.
	Cards(ctx context.Context, in id.Conversation, limit int) ([]Out, error)
	// Talk returns what agents have said or asked in the conversation of a card, whichever groups they are of, the newest first: after the
	// card, or after a time before it.
	Talk(ctx context.Context, card id.Out, since time.Time, limit int) ([]string, error)
	// CardsAbout returns those about a change that ask something, oldest first.
	CardsAbout(ctx context.Context, of id.Change) ([]Out, error)
	// NoteDelivery writes down when somebody was told a card; the first time counts.
	NoteDelivery(ctx context.Context, card id.Out, at time.Time) error
	// DropMessages removes messages that came to their end before a time, and what was sent before it: none that waits, that comes again or
	// whose question waits. It returns how many.
	DropMessages(ctx context.Context, before time.Time) (int64, error)
	// CountIns counts messages by status, of a chat or of all.
	CountIns(ctx context.Context, chat id.Chat) (map[Status]int, error)
	// CountAlong counts what waits in a chat and wakes nobody, of whatever kind: it goes along with what does.
	CountAlong(ctx context.Context, chat id.Chat) (int, error)
}

// Cancelled reports whether a message is a task that was ended before it was given in a turn.
func (m In) Cancelled() bool { return m.Task != "" && m.Status == Completed && m.Turn == 0 }

// Planned reports whether a message is a task whose time has not come.
func (m In) Planned(now time.Time) bool {
	return m.Task != "" && m.Status == Pending && m.Tries == 0 && m.Due.After(now)
}

// Row is what stuck detection sees of a message in process.
func (m In) Row(claimed time.Duration) stuck.Row {
	return stuck.Row{ID: string(m.ID), Claimed: claimed, Fence: m.Fence, Tries: m.Tries, Due: m.Due}
}

// Shown is what an agent sees of a message.
func (m In) Shown() prompt.Message {
	return prompt.Message{
		ID: string(m.ID), Kind: m.Kind, Trigger: m.Trigger, At: m.At, Sender: m.Sender, Text: m.Text,
		ReplyTo: m.ReplyTo, Quote: m.Quote, Question: m.Question,
	}
}
