package modeltest

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Turn is one answer of the model. The zero Turn says nothing and ends the agent's turn.
type Turn struct {
	Think string // before the text
	Text  string
	Calls []Call

	Status     int    // 400 and more: an error in the answer's place
	Message    string // of the error; "" has one
	RetryAfter string // header of the error
	Final      bool   // the error says that asking again is no use
	Times      int    // how often in a row this turn is given; 0 is once
	Until      string // the turn is given until a request has these words, which the next turn answers

	End     End   // why the answer ends
	Cut     bool  // the connection breaks in the middle of the answer
	Before  *Gate // stands before the first byte of the answer
	Middle  *Gate // stands in the middle of a streamed answer
	Usage   Usage // zero: UsageOf a turn by default
	NoUsage bool  // the answer does not tell
}

// Usage is in the terms of egress.Usage: Input does not count Cached.
type Usage struct{ Input, Cached, Output int64 }

// DefaultUsage is what a turn has used unless it says otherwise.
var DefaultUsage = Usage{Input: 700, Cached: 300, Output: 20}

// Over is the text once a script has no more turns.
const Over = "There is nothing more to do."

// Call is one call of a tool: by its name, or by what it means.
type Call struct {
	Name  string // of the agent's own tool, or "" with Mean
	Args  any    // marshalled; a json.RawMessage or string goes as it is, also if it is no JSON
	Input string // of a tool that takes free text

	Mean string // shell, write, read, edit
	args map[string]string
}

// Shell runs a command by whatever tool runs commands.
func Shell(command string) Call {
	return Call{Mean: "shell", args: map[string]string{"command": command}}
}

// Write makes a file.
func Write(path, content string) Call {
	return Call{Mean: "write", args: map[string]string{"path": path, "content": content}}
}

// Read reads a file.
func Read(path string) Call { return Call{Mean: "read", args: map[string]string{"path": path}} }

// Edit replaces one text of a file by another.
func Edit(path, old, text string) Call {
	return Call{Mean: "edit", args: map[string]string{"path": path, "old": old, "new": text}}
}

// heard reports whether a turn waits for words, and a request has them.
func (t Turn) heard(request []byte) bool {
	return t.Until != "" && bytes.Contains(request, []byte(t.Until))
}

// Say is a turn of words only.
func Say(text string) Turn { return Turn{Text: text} }

// Do is a turn of calls.
func Do(calls ...Call) Turn { return Turn{Text: "I will use a tool.", Calls: calls} }

// Fail is an HTTP error.
func Fail(status int) Turn { return Turn{Status: status} }

// Gate holds an answer back until it is opened.
type Gate struct {
	reached, open   chan struct{}
	reach, released sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate { return &Gate{reached: make(chan struct{}), open: make(chan struct{})} }

// Reached is closed once an answer stands at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open lets every answer through, now and later.
func (g *Gate) Open() { g.released.Do(func() { close(g.open) }) }

// wait stands at the gate; false if the client or the server went away before it opened.
func (g *Gate) wait(gone, stop <-chan struct{}) bool {
	if g == nil {
		return true
	}
	g.reach.Do(func() { close(g.reached) })
	select {
	case <-g.open:
		return true
	case <-gone:
	case <-stop:
	}
	return false
}

// End is why an answer ends, beside that all is said.
type End string

const (
	Long    End = "long"    // it reached the most that one answer has
	Refused End = "refused" // the model will not say it
)

// answer is a turn made ready for a wire.
type answer struct {
	model, id   string
	think, text string
	calls       []call
	end         End
	usage       *Usage // nil: not told
}

// call is a Call with the name and arguments of a tool that was offered.
type call struct {
	id, name string
	group    string // that the tool was offered in
	args     string // JSON, or the input of a free tool
	free     bool
}

func (c call) object() json.RawMessage {
	if json.Valid([]byte(c.args)) {
		return json.RawMessage(c.args)
	}
	raw, _ := json.Marshal(c.args)
	return raw
}
