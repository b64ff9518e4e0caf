package api

import (
	"encoding/json"
	"net/http"

	"sallyport/internal/base/inert"
)

// messages is Anthropic's wire.
type messages struct{}

// tokensMax is the most that one answer has; the wire wants it said, and every current model gives as many.
const tokensMax = 16000

func (messages) ask() string    { return "/v1/messages" }
func (messages) models() string { return "/v1/models" }
func (messages) usual() string  { return "claude-sonnet-4-5" }

func (messages) header(h http.Header) { h.Set("anthropic-version", "2023-06-01") }

// cached marks up to where the vendor may remember what it was told.
var cached = map[string]string{"type": "ephemeral"}

func (messages) body(q question) any {
	type object = map[string]any
	tools := []object{}
	for _, t := range q.tools {
		tools = append(tools, object{"name": t.name, "description": t.about, "input_schema": t.schema()})
	}
	var all []object
	var content []object
	role := ""
	flush := func() {
		if len(content) > 0 {
			all = append(all, object{"role": role, "content": content})
		}
		content = nil
	}
	for _, e := range q.said {
		as := roleUser
		if e.Role == roleAssistant {
			as = roleAssistant
		}
		if as != role { // what a person and the tools say one after the other is one message
			flush()
			role = as
		}
		switch {
		case e.Role == roleTool:
			content = append(content, object{"type": "tool_result", "tool_use_id": e.ID, "is_error": e.Failed,
				"content": []object{{"type": "text", "text": orBlank(e.Text)}}})
		case e.Text != "":
			content = append(content, object{"type": "text", "text": e.Text})
		}
		for _, c := range e.Calls {
			content = append(content, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.object()})
		}
	}
	flush()
	if len(all) > 0 {
		last := all[len(all)-1]["content"].([]object)
		last[len(last)-1]["cache_control"] = cached
	}
	out := object{
		"model": q.model, "max_tokens": tokensMax, "stream": true, "messages": all,
		"system": []object{{"type": "text", "text": q.system, "cache_control": cached}},
	}
	if len(tools) > 0 {
		out["tools"] = tools
	}
	return out
}

// orBlank keeps a wire from a text that it refuses because it is empty.
func orBlank(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

// block is a piece of an answer.
type block struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Input    json.RawMessage `json:"input"`
}

func (messages) stream(next func() (event, error), l listener) (reply, error) {
	m := newMaker(l)
	why := stopDone
	for {
		e, err := next()
		if err != nil {
			return reply{}, err
		}
		var v struct {
			Type         string      `json:"type"`
			Index        int         `json:"index"`
			ContentBlock block       `json:"content_block"`
			Error        vendorError `json:"error"`
			Delta        struct {
				Text        string `json:"text"`
				Thinking    string `json:"thinking"`
				PartialJSON string `json:"partial_json"`
				StopReason  string `json:"stop_reason"`
			} `json:"delta"`
		}
		if json.Unmarshal(e.data, &v) != nil {
			return reply{}, errCut
		}
		switch v.Type {
		case "content_block_start":
			m.say(v.ContentBlock.Text)
			if v.ContentBlock.Type == "tool_use" {
				m.call(v.Index, v.ContentBlock.ID, v.ContentBlock.Name, "")
			}
		case "content_block_delta":
			m.say(v.Delta.Text)
			m.think(v.Delta.Thinking)
			if v.Delta.PartialJSON != "" {
				m.call(v.Index, "", "", v.Delta.PartialJSON)
			}
		case "message_delta":
			why = messagesStop(v.Delta.StopReason)
		case "message_stop":
			return m.done(why), nil
		case "error":
			r := v.Error.fill(refusal{})
			r.text = inert.Brief(r.text, refusalBytesMax)
			return reply{}, r
		}
	}
}

func messagesStop(reason string) stop {
	switch reason {
	case "tool_use":
		return stopTools
	case "max_tokens", "model_context_window_exceeded":
		return stopLength
	case "refusal":
		return stopRefused
	}
	return stopDone
}

func (messages) whole(raw []byte) (reply, error) {
	var v struct {
		Content    []block `json:"content"`
		StopReason string  `json:"stop_reason"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return reply{}, errCut
	}
	m := newMaker(deaf)
	for i, b := range v.Content {
		m.say(b.Text)
		if b.Type == "tool_use" {
			m.call(i, b.ID, b.Name, string(b.Input))
		}
	}
	return m.done(messagesStop(v.StopReason)), nil
}

// deaf hears nothing: what came at once is shown at once.
var deaf = listener{say: func(string) {}, think: func(string) {}}
