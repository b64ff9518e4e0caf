package prompt

import "time"

// Kind is what a message is.
type Kind string

const (
	Chat   Kind = "chat"
	Task   Kind = "task"   // a schedule's text
	System Kind = "system" // the host's word
	Answer Kind = "answer" // to a question that the agent asked
)

// Message is a row that waits, as far as an agent sees it. Its texts may be anything.
type Message struct {
	ID       string // by which an agent names it, and a reply points at it; it sees that of words and answers
	Kind     Kind
	Trigger  bool // it wakes (CH-006); without it, it is context
	At       time.Time
	Sender   string // the label of who wrote it; of chat and answers
	Text     string
	ReplyTo  string // the id of the message it replies to; "" for none
	Quote    Quote
	Question string // that an answer answers
}

// Quote is what a message quotes.
type Quote struct {
	From string
	Text string
}

// Sent is what an earlier try of the turn had sent before it failed.
type Sent struct {
	At   time.Time
	Text string
}

// LimitVariable says how many chat messages a prompt holds: to the host, and to what runs in a session (CH-014).
const LimitVariable = "SALLYPORT_MAX_MESSAGES_PER_PROMPT"

const (
	MessagesDefault = 10       // chat messages in a prompt, where LimitVariable says nothing (CH-014)
	MessagesMax     = 100      // whatever it says
	OthersMax       = 50       // tasks, system messages and answers in a prompt
	SentMax         = 20       // of what a failed turn had sent, the newest
	TextMax         = 32 << 10 // bytes of a text
	QuoteMax        = 2 << 10  // bytes of a quote, of a question, and of what had been sent
	NameMax         = 128      // bytes of a name or an id
	FoldedMax       = 1 << 20  // bytes of what is not shown, where an agent can read it
)
