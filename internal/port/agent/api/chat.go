package api

import (
	"encoding/json"
	"net/http"

	"sallyport/internal/base/inert"
)

// chat is the wire of OpenAI's chat completions, which most others speak too.
type chat struct{}

func (chat) ask() string        { return "/chat/completions" }
func (chat) models() string     { return "/models" }
func (chat) usual() string      { return "gpt-5" }
func (chat) header(http.Header) {}

func (chat) body(q question) any {
	type object = map[string]any
	all := []object{{"role": "system", "content": q.system}}
	for _, e := range q.said {
		switch e.Role {
		case roleTool:
			all = append(all, object{"role": "tool", "tool_call_id": e.ID, "content": orBlank(e.Text)})
			continue
		case roleUser:
			all = append(all, object{"role": "user", "content": e.Text})
			continue
		}
		said := object{"role": "assistant", "content": e.Text}
		var calls []object
		for _, c := range e.Calls {
			calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": string(c.object())}})
		}
		if calls != nil {
			said["tool_calls"] = calls
		}
		all = append(all, said)
	}
	out := object{"model": q.model, "stream": true, "stream_options": object{"include_usage": true}, "messages": all}
	var tools []object
	for _, t := range q.tools {
		tools = append(tools, object{"type": "function", "function": object{"name": t.name, "description": t.about, "parameters": t.schema()}})
	}
	if tools != nil {
		out["tools"] = tools
	}
	return out
}

// choice is an answer, or a piece of one.
type choice struct {
	Delta        said   `json:"delta"`
	Message      said   `json:"message"`
	FinishReason string `json:"finish_reason"`
}

type said struct {
	Content          string `json:"content"`
	Refusal          string `json:"refusal"`
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// add puts a piece to what there is.
func (s said) add(m *maker) {
	m.think(s.ReasoningContent + s.Reasoning)
	m.say(s.Content)
	m.say(s.Refusal)
	for i, c := range s.ToolCalls {
		number := i
		if c.Index != nil {
			number = *c.Index
		}
		m.call(number, c.ID, c.Function.Name, c.Function.Arguments)
	}
}

func (chat) stream(next func() (event, error), l listener) (reply, error) {
	m := newMaker(l)
	reason := ""
	for {
		e, err := next()
		switch {
		case err != nil && reason != "": // not everybody ends a stream with the word for it
			return m.done(chatStop(reason, m)), nil
		case err != nil:
			return reply{}, err
		case e.done && reason == "" && m.out.text == "" && len(m.out.calls) == 0:
			return reply{}, errCut
		case e.done:
			return m.done(chatStop(reason, m)), nil
		}
		var v struct {
			Choices []choice     `json:"choices"`
			Error   *vendorError `json:"error"`
		}
		if json.Unmarshal(e.data, &v) != nil {
			return reply{}, errCut
		}
		if v.Error != nil {
			r := v.Error.fill(refusal{})
			r.text = inert.Brief(r.text, refusalBytesMax)
			return reply{}, r
		}
		if len(v.Choices) > 0 {
			v.Choices[0].Delta.add(m)
			if v.Choices[0].FinishReason != "" {
				reason = v.Choices[0].FinishReason
			}
		}
	}
}

func chatStop(reason string, m *maker) stop {
	switch reason {
	case "length":
		return stopLength
	case "content_filter":
		return stopRefused
	}
	if len(m.out.calls) > 0 {
		return stopTools
	}
	return stopDone
}

func (chat) whole(raw []byte) (reply, error) {
	var v struct {
		Choices []choice `json:"choices"`
	}
	if json.Unmarshal(raw, &v) != nil || len(v.Choices) == 0 {
		return reply{}, errCut
	}
	m := newMaker(deaf)
	v.Choices[0].Message.add(m)
	return m.done(chatStop(v.Choices[0].FinishReason, m)), nil
}
