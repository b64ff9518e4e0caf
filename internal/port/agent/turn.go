package agent

// What crosses the standard streams of a program that an adapter drives, beside the messages of SV-083 and SV-086.
// Host to program: the first line is an Order; then messages; the end of stdin says that nothing more is wanted, and
// the program ends once its turn is over. Program to host: lines of text for people, answers, and one TurnEnd a turn.
// What an adapter shows of an agent never begins with a brace, so that an agent's words are no answer.

// Order is the first line of an adapter's stdin.
type Order struct {
	Engine   string   `json:"engine"`          // name of the driver: acp, codex, pi, api
	Agent    string   `json:"agent"`           // codex, gemini, acp
	Argv     []string `json:"argv,omitempty"`  // the agent's own program, inside
	Env      []string `json:"env,omitempty"`   // for the agent alone
	Wire     Wire     `json:"wire,omitempty"`  // of its model
	Base     string   `json:"base,omitempty"`  // ModelBase, or "" if it has no model through us
	Model    string   `json:"model,omitempty"` // "" = the agent's default
	Text     string   `json:"text"`            // the request
	Resumed  *Resumed `json:"resumed,omitempty"`
	Denied   []string `json:"denied,omitempty"` // kinds of tool calls that are refused
	MaxTurns int      `json:"max_turns"`        // turns that one program takes at the most
}

// TurnEndType is the type of a TurnEnd on the wire.
const TurnEndType = "turn_end"

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

const (
	// SaysBytesMax is the most of an agent's last words that a TurnEnd holds.
	SaysBytesMax = 4 << 10
	// ReasonBytesMax is the most of a TurnEnd's Reason.
	ReasonBytesMax = 1 << 10
	// OrderBytesMax is the longest Order, its newline included.
	OrderBytesMax = 2 << 20
)
