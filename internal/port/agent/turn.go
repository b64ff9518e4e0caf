package agent

// What crosses the standard streams of a program that an adapter drives, beside the messages of SV-083 and SV-086.
// Host to program: the first line is an Order; then messages; the end of stdin says that nothing more is wanted, and
// the program ends once its turn is over. Program to host: lines of text for people, answers, and one TurnEnd a turn.
// What an adapter shows of an agent never begins with a brace, so that an agent's words are no answer.
//
// A program that serves a conversation (Order.Chat) has no request: it opens its agent and waits for words. Beside all this it
// says what the agent says (Text) and which tools it uses (ToolCall), and takes the message {"type":"interrupt"}, which ends the
// turn that is under way as cancelled. Its turns are not counted, and what it says is bounded for each of them alone.

// Order is the first line of an adapter's stdin.
type Order struct {
	Engine   string   `json:"engine"`          // name of the driver: acp, codex, pi, api, echo
	Agent    string   `json:"agent"`           // codex, gemini, acp
	Argv     []string `json:"argv,omitempty"`  // the agent's own program, inside
	Env      []string `json:"env,omitempty"`   // for the agent alone
	Wire     Wire     `json:"wire,omitempty"`  // of its model
	Base     string   `json:"base,omitempty"`  // ModelBase, or "" if it has no model through us
	Login    bool     `json:"login,omitempty"` // the host asks it with the login of the agent's own program
	Model    string   `json:"model,omitempty"` // "" = the agent's default
	Text     string   `json:"text"`            // the request
	Resumed  *Resumed `json:"resumed,omitempty"`
	Denied   []string `json:"denied,omitempty"` // kinds of tool calls that are refused
	MaxTurns int      `json:"max_turns"`        // turns that one program takes at the most; of a conversation any number
	Chat     bool     `json:"chat,omitempty"`   // it serves a conversation
	System   string   `json:"system,omitempty"` // of a conversation: what the agent is told once, before all words
	Tools    string   `json:"tools,omitempty"`  // path inside of the socket at which the host is asked for things; "" = none
	Off      []string `json:"off,omitempty"`    // tools, by the agent's own names, that it is not given
}

// Fetch is the kind of the tool calls that reach the web.
const Fetch = "fetch"

// Types of what a program tells the host.
const (
	TurnEndType  = "turn_end"
	TextType     = "text"
	ToolCallType = "tool"
)

// Outcomes of a turn. That a turn is done says nothing about the tree.
const (
	TurnDone      = "done"
	TurnFailed    = "failed"    // the agent or its model gave up; Reason says why
	TurnCancelled = "cancelled" // it was interrupted on purpose
)

// TurnEnd is what a program says at the end of each turn; then it waits.
type TurnEnd struct {
	Type    string `json:"type"` // turn_end
	Turn    int    `json:"turn"` // from 1
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"` // of a failure, one line, for a person
	Says    string `json:"says,omitempty"`   // the agent's last words, at most SaysBytesMax
	More    bool   `json:"more,omitempty"`   // words came meanwhile that it could not be given: they are the next turn's, which has begun
}

// Text is a piece of what an agent says in a conversation, as it comes; all pieces of a turn together are exactly what it said.
type Text struct {
	Type   string `json:"type"`   // text
	Turn   int    `json:"turn"`   // from 1
	Number int    `json:"number"` // from 1 in each turn, without gaps
	Text   string `json:"text"`
}

// ToolCall says that a tool of an agent in a conversation has begun or is over. Each that has begun is over at the end of its turn.
type ToolCall struct {
	Type      string `json:"type"`                 // tool
	Turn      int    `json:"turn"`                 // from 1
	ID        string `json:"id"`                   // of this call among all of the program's
	Kind      string `json:"kind"`                 // read, edit, delete, move, search, execute, think, fetch, other
	Title     string `json:"title"`                // one line, for a person
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // how long the agent has declared that it may take; 0 = it has not
	Over      bool   `json:"over,omitempty"`
	Failed    bool   `json:"failed,omitempty"` // of one that is over
}

const (
	// TextBytesMax is the most that an agent says in one turn of a conversation; then a piece says that it was cut.
	TextBytesMax = 64 << 10
	// TitleBytesMax is the most of a ToolCall's Title, and of its Kind.
	TitleBytesMax = 300
	// ToolIDBytesMax is the longest ID of a ToolCall.
	ToolIDBytesMax = 32
	// SystemBytesMax is the most of an Order's System.
	SystemBytesMax = 256 << 10
	// SaysBytesMax is the most of an agent's last words that a TurnEnd holds.
	SaysBytesMax = 4 << 10
	// ReasonBytesMax is the most of a TurnEnd's Reason.
	ReasonBytesMax = 1 << 10
	// OrderBytesMax is the longest Order, its newline included.
	OrderBytesMax = 2 << 20
)
