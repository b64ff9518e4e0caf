package api

import (
	"encoding/json"
	"net/http"

	"sallyport/internal/base/inert"
)

// responses is OpenAI's newer wire. Nothing is stored at the vendor's: what a model wants to be reminded of it gets back.
type responses struct{}

func (responses) ask() string        { return "/responses" }
func (responses) models() string     { return "/models" }
func (responses) usual() string      { return "gpt-5" }
func (responses) header(http.Header) {}

func (responses) body(q question) any {
	type object = map[string]any
	input := []any{}
	for _, e := range q.said {
		switch {
		case e.Role == roleTool:
			input = append(input, object{"type": "function_call_output", "call_id": e.ID, "output": orBlank(e.Text)})
			continue
		case e.Role == roleUser:
			input = append(input, object{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": e.Text}}})
			continue
		}
		for _, raw := range e.Opaque {
			input = append(input, raw)
		}
		if e.Text != "" {
			input = append(input, object{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": e.Text}}})
		}
		for _, c := range e.Calls {
			input = append(input, object{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": string(c.object())})
		}
	}
	out := object{
		"model": q.model, "stream": true, "store": false, "instructions": q.system, "input": input,
		"include": []string{"reasoning.encrypted_content"},
	}
	var tools []object
	for _, t := range q.tools {
		tools = append(tools, object{"type": "function", "name": t.name, "description": t.about, "parameters": t.schema(), "strict": false})
	}
	if tools != nil {
		out["tools"] = tools
	}
	return out
}

// item is a piece of an answer.
type item struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Content   []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// answered is the whole answer, as the last event has it too.
type answered struct {
	Output            []json.RawMessage `json:"output"`
	Error             *vendorError      `json:"error"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

func (responses) stream(next func() (event, error), l listener) (reply, error) {
	m := newMaker(l)
	for {
		e, err := next()
		if err != nil {
			return reply{}, err
		}
		var v struct {
			Type        string          `json:"type"`
			OutputIndex int             `json:"output_index"`
			Delta       json.RawMessage `json:"delta"`
			Item        json.RawMessage `json:"item"`
			Response    answered        `json:"response"`
			vendorError
		}
		if e.done || json.Unmarshal(e.data, &v) != nil {
			return reply{}, errCut
		}
		switch v.Type {
		case "response.output_text.delta", "response.refusal.delta":
			m.say(word(v.Delta))
		case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
			m.think(word(v.Delta))
		case "response.output_item.done":
			m.item(v.OutputIndex, v.Item, false)
		case "response.completed":
			return m.done(responsesStop(m, "")), nil
		case "response.incomplete":
			return m.done(responsesStop(m, v.Response.IncompleteDetails.Reason)), nil
		case "response.failed", "error":
			failed := v.vendorError
			if v.Response.Error != nil {
				failed = *v.Response.Error
			}
			r := failed.fill(refusal{})
			r.text = inert.Brief(r.text, refusalBytesMax)
			return reply{}, r
		}
	}
}

func word(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // what is no text says nothing
	return s
}

// item takes a piece that is whole; aloud says its words too, which a stream has said already.
func (m *maker) item(number int, raw json.RawMessage, aloud bool) {
	var it item
	if json.Unmarshal(raw, &it) != nil {
		return
	}
	switch it.Type {
	case "function_call":
		m.call(number, it.CallID, it.Name, it.Arguments)
	case "reasoning":
		if it.Encrypted != "" { // without it the vendor cannot read it again
			m.keep(raw)
		}
	case "message":
		for _, c := range it.Content {
			if aloud {
				m.say(c.Text)
				m.say(c.Refusal)
			}
		}
	}
}

func responsesStop(m *maker, reason string) stop {
	switch reason {
	case "":
	case "content_filter":
		return stopRefused
	default:
		return stopLength
	}
	if len(m.out.calls) > 0 {
		return stopTools
	}
	return stopDone
}

func (responses) whole(raw []byte) (reply, error) {
	var v answered
	if json.Unmarshal(raw, &v) != nil {
		return reply{}, errCut
	}
	if v.Error != nil {
		r := v.Error.fill(refusal{})
		r.text = inert.Brief(r.text, refusalBytesMax)
		return reply{}, r
	}
	m := newMaker(deaf)
	for i, raw := range v.Output {
		m.item(i, raw, true)
	}
	return m.done(responsesStop(m, v.IncompleteDetails.Reason)), nil
}
