package pi

import (
	"encoding/json"
	"strings"
	"time"

	"sallyport/internal/port/agent"
)

const (
	// saysBytesMax is the most that is kept of pi's last words.
	saysBytesMax = 64 << 10
	// partsMax bounds what is remembered of one message, and of calls under way.
	partsMax = 1000
)

// work shows what pi does.
func (n *turn) work(e event) {
	switch e.Type {
	case "message_start":
		n.fresh()
	case "message_update":
		n.update(e)
	case "message_end":
		n.message(e)
	case "tool_execution_start":
		n.tool(e)
	case "tool_execution_end":
		delete(n.calls, e.ToolCallID)
		n.t.show.Ended(e.ToolCallID, e.IsError)
	}
}

func (n *turn) update(e event) {
	u := e.Update
	switch u.Type {
	case "": // the rest of the message is told at its end
		n.lost = true
	case "text_delta":
		if at, ok := n.said[u.ContentIndex]; !n.lost && (ok || len(n.said) < partsMax) {
			n.said[u.ContentIndex] = at + len(u.Delta)
			n.t.show.Say(u.Delta)
		}
	case "thinking_delta":
		n.t.show.Think(u.Delta)
	case "thinking_end":
		n.t.show.Think("\n")
	}
}

// message shows what was not told of a message while it was written, and remembers how it ended.
func (n *turn) message(e event) {
	var m message
	if json.Unmarshal(e.Message, &m) != nil || m.Role != "assistant" {
		return
	}
	n.stop, n.failure = m.StopReason, m.ErrorMessage
	var words []string
	for i, p := range m.parts() {
		if p.Type != "text" || strings.TrimSpace(p.Text) == "" {
			continue
		}
		if shown := n.said[i]; shown < len(p.Text) {
			n.t.show.Say(strings.ToValidUTF8(p.Text[shown:], ""))
		}
		n.t.show.Say("\n")
		words = append(words, strings.TrimSpace(p.Text))
	}
	if m.StopReason == "length" {
		n.t.show.Note("the model's answer reached its greatest length and was cut off")
	}
	if len(words) > 0 {
		n.says = strings.Join(words, "\n")
		if len(n.says) > saysBytesMax {
			n.says = strings.ToValidUTF8(n.says[len(n.says)-saysBytesMax:], "")
		}
	}
	n.fresh()
}

// fresh begins another message.
func (n *turn) fresh() {
	clear(n.said)
	n.lost = false
}

func (n *turn) tool(e event) {
	k := kind(e.ToolName)
	if len(n.calls) < partsMax {
		n.calls[e.ToolCallID] = k
	}
	title := e.ToolName
	switch {
	case e.Args.Command != "":
		title = e.Args.Command
	case e.Args.Pattern != "":
		title = e.ToolName + " " + e.Args.Pattern
	case e.Args.Path != "":
		title = e.Args.Path
	}
	var limit time.Duration
	if s := e.Args.Timeout; s > 0 && s < 1e9 {
		limit = time.Duration(s * float64(time.Second))
	}
	n.t.show.Began(agent.Tool{ID: e.ToolCallID, Kind: k, Title: title, Name: e.ToolName, Timeout: limit})
}
