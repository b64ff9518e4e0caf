package api

import (
	"encoding/json"
	"net/http"

	"sallyport/internal/port/agent"
)

// Roles of an entry.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// entry is one thing that was said, in no wire's words. It is what is kept.
type entry struct {
	Role  string `json:"role"`
	Text  string `json:"text,omitempty"` // of a tool: its result
	Calls []call `json:"calls,omitempty"`
	// Opaque is what the wire wants to be given back as it was, before the calls: a model's encrypted reasoning.
	Opaque []json.RawMessage `json:"opaque,omitempty"`
	ID     string            `json:"id,omitempty"`     // of a tool's result: the call's
	Failed bool              `json:"failed,omitempty"` // of a tool's result
}

// call is a tool call as the model wrote it; Args may be anything.
type call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// object is the arguments as a wire can be given them back: what was no JSON object is none.
func (c call) object() json.RawMessage {
	var any map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Args), &any) != nil || any == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Args)
}

// question is what a model is asked.
type question struct {
	model  string
	system string
	tools  []tool
	said   []entry
}

// reply is what it answered.
type reply struct {
	text   string
	calls  []call
	opaque []json.RawMessage
	stop   stop
}

// stop is why an answer ended.
type stop int

const (
	stopDone    stop = iota // it has said what it has to say
	stopTools               // it waits for its tools
	stopLength              // it reached the most that one answer has
	stopRefused             // it will not say it
)

// listener is told what a model says while it says it.
type listener struct{ say, think func(string) }

// wire is how a vendor writes all this.
type wire interface {
	ask() string    // path of a question
	models() string // path of the list of models
	usual() string  // the model that is asked if nobody names one
	header(h http.Header)
	body(q question) any
	// stream reads an answer of server-sent events. Errors: errCut if it ends before its end, a refusal.
	stream(next func() (event, error), l listener) (reply, error)
	// whole reads an answer that came at once.
	whole(raw []byte) (reply, error)
}

var wires = map[agent.Wire]wire{
	agent.Messages:  messages{},
	agent.Chat:      chat{},
	agent.Responses: responses{},
}

// Bounds of one answer; what is more is cut off, and the model is told.
const (
	textBytesMax   = 1 << 20
	callsMax       = 64
	argsBytesMax   = 2 << 20
	opaqueBytesMax = 256 << 10
)

// maker puts an answer together from its pieces.
type maker struct {
	l     listener
	out   reply
	index map[int]int // of the wire's own number of a call to its place
	over  bool        // a bound was reached
}

func newMaker(l listener) *maker { return &maker{l: l, index: map[int]int{}} }

func (m *maker) say(text string) {
	if text == "" || m.full(len(m.out.text)+len(text) > textBytesMax) {
		return
	}
	m.out.text += text
	m.l.say(text)
}

func (m *maker) think(text string) {
	if text != "" {
		m.l.think(text)
	}
}

// call begins a call, or adds what is known of it by now; number is the wire's own.
func (m *maker) call(number int, id, name, args string) {
	at, ok := m.index[number]
	if !ok || id != "" && m.out.calls[at].ID != "" && m.out.calls[at].ID != id { // not everybody counts them
		if m.full(len(m.out.calls) >= callsMax) {
			return
		}
		at = len(m.out.calls)
		m.index[number] = at
		m.out.calls = append(m.out.calls, call{})
	}
	c := &m.out.calls[at]
	if c.ID == "" {
		c.ID = id
	}
	if c.Name == "" {
		c.Name = name
	}
	if m.full(len(c.Args)+len(args) > argsBytesMax) {
		return
	}
	c.Args += args
}

func (m *maker) keep(raw json.RawMessage) {
	if len(raw) <= opaqueBytesMax && len(m.out.opaque) < callsMax {
		m.out.opaque = append(m.out.opaque, raw)
	}
}

func (m *maker) full(yes bool) bool {
	m.over = m.over || yes
	return yes
}

// done is the whole answer.
func (m *maker) done(why stop) reply {
	if m.over {
		why = stopLength
	}
	m.out.stop = why
	return m.out
}
