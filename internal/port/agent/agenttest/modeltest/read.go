package modeltest

import (
	"encoding/json"
	"errors"
	"strings"

	"sallyport/internal/port/agent"
)

// Message is what a request says has been said.
type Message struct {
	Role string // system, user, assistant, tool
	Text string // of a tool: its result
}

// said is what a request of any wire says.
type said struct {
	model    string
	stream   bool
	usage    bool // of a stream: it is wanted
	tools    []tool
	messages []Message
	asJSON   bool // the answer has to be JSON
}

// part is any piece of content on any wire.
type part struct {
	Type             string          `json:"type"`
	Text             string          `json:"text"`
	Content          json.RawMessage `json:"content"` // of a tool's result
	FunctionResponse *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// body has the fields of all wires; none means two things.
type body struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Type                 string   `json:"type"`
		Name                 string   `json:"name"`
		Parameters           schema   `json:"parameters"`
		InputSchema          schema   `json:"input_schema"`
		Function             *named   `json:"function"`
		FunctionDeclarations []*named `json:"functionDeclarations"`
		Tools                []named  `json:"tools"` // of a namespace
	} `json:"tools"`
	System            json.RawMessage `json:"system"`
	Instructions      string          `json:"instructions"`
	SystemInstruction *turnOf         `json:"systemInstruction"`
	Messages          []turnOf        `json:"messages"`
	Input             json.RawMessage `json:"input"`
	Contents          []turnOf        `json:"contents"`
	StreamOptions     struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	GenerationConfig struct {
		ResponseMimeType string `json:"responseMimeType"`
	} `json:"generationConfig"`
}

type named struct {
	Name                 string `json:"name"`
	Parameters           schema `json:"parameters"`
	ParametersJSONSchema schema `json:"parametersJsonSchema"`
}

// turnOf is one message of any wire, or one item of the responses wire.
type turnOf struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
	Parts   []part          `json:"parts"`
}

func read(wire agent.Wire, raw []byte) (said, error) {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		return said{}, err
	}
	out := said{model: b.Model, stream: b.Stream, usage: b.StreamOptions.IncludeUsage}
	out.asJSON = b.GenerationConfig.ResponseMimeType == "application/json"
	out.tools = b.offered()
	turns := append(b.Messages, b.Contents...)
	if len(b.Input) > 0 {
		var words string
		if json.Unmarshal(b.Input, &words) == nil {
			turns = append(turns, turnOf{Role: "user", Content: b.Input})
		} else if err := json.Unmarshal(b.Input, &turns); err != nil {
			return said{}, err
		}
	}
	if len(turns) == 0 {
		return said{}, errors.New("the request says nothing")
	}
	if system := b.Instructions + textOf(b.System); system != "" {
		out.messages = append(out.messages, Message{"system", system})
	}
	if b.SystemInstruction != nil {
		out.messages = append(out.messages, Message{"system", join(b.SystemInstruction.Parts)})
	}
	for _, t := range turns {
		out.messages = append(out.messages, t.messages(wire)...)
	}
	return out, nil
}

func (b body) offered() (all []tool) {
	for _, t := range b.Tools {
		switch {
		case t.Function != nil:
			all = append(all, tool{name: t.Function.Name, schema: t.Function.Parameters})
		case len(t.FunctionDeclarations) > 0:
			for _, f := range t.FunctionDeclarations {
				s := f.Parameters
				if len(s.Properties) == 0 {
					s = f.ParametersJSONSchema
				}
				all = append(all, tool{name: f.Name, schema: s})
			}
		case t.Type == "namespace":
			for _, f := range t.Tools {
				all = append(all, tool{name: f.Name, group: t.Name, schema: f.Parameters})
			}
		default:
			s := t.Parameters
			if len(s.Properties) == 0 {
				s = t.InputSchema
			}
			all = append(all, tool{name: t.Name, free: t.Type == "custom", schema: s})
		}
	}
	return all
}

// messages splits off what tools have answered.
func (t turnOf) messages(wire agent.Wire) []Message {
	role := t.Role
	switch {
	case strings.HasSuffix(t.Type, "_call_output"):
		return []Message{{"tool", textOf(t.Output)}}
	case strings.HasSuffix(t.Type, "_call") || t.Type == "reasoning" || role == "model":
		role = "assistant"
	case role == "developer":
		role = "system"
	}
	if wire == agent.Chat || len(t.Parts) == 0 && plain(t.Content) {
		return []Message{{role, textOf(t.Content)}}
	}
	parts := t.Parts
	if len(parts) == 0 {
		_ = json.Unmarshal(t.Content, &parts) // other shapes have no text
	}
	var out []Message
	var rest []part
	for _, p := range parts {
		switch {
		case p.Type == "tool_result":
			out = append(out, Message{"tool", textOf(p.Content)})
		case p.FunctionResponse != nil:
			out = append(out, Message{"tool", string(p.FunctionResponse.Response)})
		default:
			rest = append(rest, p)
		}
	}
	if len(rest) > 0 || len(out) == 0 {
		out = append(out, Message{role, join(rest)})
	}
	return out
}

func plain(raw json.RawMessage) bool {
	var s string
	return len(raw) == 0 || json.Unmarshal(raw, &s) == nil
}

// textOf reads a text, or parts that have texts.
func textOf(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []part
	if json.Unmarshal(raw, &parts) == nil {
		return join(parts)
	}
	return string(raw)
}

func join(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
		if p.Text != "" {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
