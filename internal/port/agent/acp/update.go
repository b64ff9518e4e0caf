package acp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
)

const (
	callsMax = 4096 // tool calls of a turn that are known by name
	lastMax  = 4 * agent.SaysBytesMax
	kindMax  = 20 // bytes of a kind's name
	planMax  = 30 // steps of a plan that are shown
)

// turn is what is known of the one under way; talk.mu guards it.
type turn struct {
	says      []byte // the message that is being said, its end at the most
	message   string // its id
	over      bool   // something else came after it
	calls     map[string]*call
	plan      string
	refused   bool            // a tool was
	cancelled bool            // by us
	unasked   string          // kind of a tool that is refused and was used all the same
	halt      chan struct{}   // closed then
	also      []<-chan answer // of words that were given in its middle
	stray     string          // last text that belongs to no message: codex-acp says so what went wrong
	thread    string          // state of the agent's thread, by codex-acp
	trouble   string          // what the agent says went wrong, by codex-acp
}

// call is a tool call.
type call struct {
	kind, title   string
	name          string // of the tool, as the agent calls it
	timeout       time.Duration
	shown, failed bool
	refused       bool
}

func newTurn() *turn { return &turn{calls: map[string]*call{}, halt: make(chan struct{})} }

// last is what the agent said last.
func (u *turn) last() string { return strings.ToValidUTF8(string(u.says), "") }

// hear takes a notification. What comes between turns, such as what an agent tells again of the past, is shown to nobody.
func (t *talk) hear(method string, params json.RawMessage) {
	if method != "session/update" {
		return
	}
	var n struct {
		Session string `json:"sessionId"`
		Update  update `json:"update"`
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(params, &n); err != nil && !errors.As(err, &wrong) { // a field of another shape is as good as none
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.turn
	if u == nil || n.Session != t.session {
		return
	}
	switch n.Update.Type {
	case "agent_message_chunk":
		t.say(u, n.Update)
	case "agent_thought_chunk":
		u.over = true
		if text := n.Update.text(); text != "" {
			t.show.Think(text)
		}
	case "tool_call", "tool_call_update":
		t.tool(u, n.Update)
	case "plan":
		t.plan(u, n.Update)
	case "session_info_update":
		codex := n.Update.Meta.Codex
		if codex.Thread.Type != "" {
			u.thread = codex.Thread.Type
		}
		if codex.Error.Message != "" && !codex.Error.WillRetry {
			u.trouble = inert.Brief(codex.Error.Message, saidBytesMax)
		}
	}
}

// say shows a piece of a message and keeps the end of the last one.
func (t *talk) say(u *turn, n update) {
	text := n.text()
	if text == "" {
		return
	}
	if u.over || n.MessageID != u.message {
		if len(u.says) > 0 && !u.over {
			t.show.Say("\n")
		}
		u.says, u.over, u.message = u.says[:0], false, n.MessageID
	}
	if n.MessageID == "" {
		u.stray = inert.Brief(text, saidBytesMax)
	}
	u.says = append(u.says, text...)
	if over := len(u.says) - lastMax; over > 0 {
		u.says = slices.Delete(u.says, 0, over)
	}
	t.show.Say(text)
}

// tool shows a tool call once it is more than announced, and again if it failed.
func (t *talk) tool(u *turn, n update) {
	u.over = true
	c := u.call(n)
	if n.Status == "" || n.Status == "pending" {
		return
	}
	t.shown(u, c, n)
	if n.Status == "failed" && !c.failed && !c.refused {
		c.failed = true
		t.show.Tool(c.kind, "failed: "+c.title)
	}
	if n.Status == "failed" || n.Status == "completed" {
		t.show.Ended(n.Call, n.Status == "failed")
	}
	used := n.Status == "completed" || n.Status == "in_progress" && !t.dialect.late && !c.refused
	if used && u.unasked == "" && slices.Contains(t.at.Denied, c.kind) && !u.cancelled {
		u.unasked = c.kind
		close(u.halt)
	}
}

// call is what is known of a tool call with what is new.
func (u *turn) call(n update) *call {
	c := u.calls[n.Call]
	if c == nil {
		c = &call{}
		if len(u.calls) < callsMax && len(n.Call) <= idMax {
			u.calls[n.Call] = c
		}
	}
	if n.Kind != "" && len(n.Kind) <= kindMax {
		c.kind = n.Kind
	}
	if n.Title != "" {
		c.title = inert.Brief(n.Title, saidBytesMax)
	}
	if name := n.Meta.Claude.Tool; name != "" {
		c.name = inert.Brief(name, saidBytesMax)
	}
	if limit := n.timeout(); limit > 0 {
		c.timeout = limit
	}
	return c
}

// shown shows a tool call, once.
func (t *talk) shown(u *turn, c *call, n update) {
	if c.shown {
		return
	}
	c.shown = true
	if c.kind == "" {
		c.kind = "other"
	}
	if path := n.path(t.at.dir); path != "" && !strings.Contains(c.title, path) {
		c.title = strings.TrimSpace(c.title + " " + path)
	}
	u.over = true
	t.show.Began(agent.Tool{ID: n.Call, Kind: c.kind, Title: c.title, Name: c.name, Timeout: c.timeout})
}

// plan shows what the agent means to do, when it has changed.
func (t *talk) plan(u *turn, n update) {
	var b strings.Builder
	for i, e := range n.Entries {
		if i == planMax {
			b.WriteString("…\n")
			break
		}
		mark := "[ ] "
		switch e.Status {
		case "completed":
			mark = "[x] "
		case "in_progress":
			mark = "[>] "
		}
		b.WriteString(mark + inert.Brief(e.Content, saidBytesMax) + "\n")
	}
	if text := b.String(); text != "" && text != u.plan {
		u.plan = text
		t.show.Think("plan:\n" + text)
	}
}
