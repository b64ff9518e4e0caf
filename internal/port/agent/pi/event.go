package pi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

const (
	// headBytesMax is the most that is kept of a line that is read.
	headBytesMax = 4 << 20
	// updateBytesMax is how much of a message_update is read: each repeats all of its message, twice, so to read them
	// whole would be quadratic. What is new stands at its beginning; what is not told there is told at the message's end.
	updateBytesMax = 128 << 10
	// lineBytesMax is the longest line that is skipped: the last of a run repeats all that was said in it.
	lineBytesMax = 256 << 20
	// nonsenseMax is how many lines may be no event: something beside pi may have written to its output.
	nonsenseMax = 100
)

var errNonsense = errors.New("its output is not that of its RPC mode")

// event is a line that pi writes: an answer to a command, something that happened, or a question of an extension.
type event struct {
	Type string `json:"type"`
	ID   string `json:"id"` // of an answer or a question

	// Of an answer.
	Command string `json:"command"`
	Success bool   `json:"success"`
	Error   string `json:"error"` // also of an extension's failure
	Data    state  `json:"data"`

	// Of a message: an object; of a question it is a text.
	Message json.RawMessage `json:"message"`
	Update  update          `json:"assistantMessageEvent"`

	// Of a tool's call.
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	Args       struct {
		Path    string  `json:"path"`
		Command string  `json:"command"`
		Pattern string  `json:"pattern"`
		Timeout float64 `json:"timeout"` // seconds
	} `json:"args"`
	IsError bool `json:"isError"`

	// Of another try, and of a conversation that is summed up.
	DelayMs      int    `json:"delayMs"`
	ErrorMessage string `json:"errorMessage"`
	WillRetry    bool   `json:"willRetry"`

	// Of a question.
	Method string `json:"method"`
	Title  string `json:"title"`
}

// update is what is new of a message that is being written.
type update struct {
	Type         string `json:"type"` // text_delta, thinking_delta and more; "" = it could not be read
	ContentIndex int    `json:"contentIndex"`
	Delta        string `json:"delta"`
}

// state is what pi says of itself, and the models it knows.
type state struct {
	IsStreaming         bool    `json:"isStreaming"`
	IsCompacting        bool    `json:"isCompacting"`
	MessageCount        int     `json:"messageCount"`
	PendingMessageCount int     `json:"pendingMessageCount"`
	Model               model   `json:"model"`
	Models              []model `json:"models"`
}

type model struct {
	ID       string `json:"id"`
	Provider string `json:"provider"`
}

// message is one of a conversation.
type message struct {
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"` // parts; of a user a text too
	StopReason   string          `json:"stopReason"`
	ErrorMessage string          `json:"errorMessage"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// parts are those of a message; nil if it is no list of such.
func (m message) parts() (all []part) {
	if json.Unmarshal(m.Content, &all) != nil {
		return nil
	}
	return all
}

// keeps says how much of a line of a type is read. What is not here is read whole.
var keeps = map[string]int{
	"message_update": updateBytesMax,
	"agent_end":      0, "turn_end": 0, "message_start": 0, "tool_execution_update": 0, "tool_execution_end": 0, "queue_update": 0,
}

// reader reads events. Its lines are bounded: of those that nobody needs whole only the type is kept.
type reader struct {
	in       *bufio.Reader
	nonsense int
}

// next returns the next event that was read. Errors: that of its source; errNonsense when there is too much that is none.
func (r *reader) next() (event, error) {
	for {
		head, whole, err := r.line()
		if err != nil {
			return event{}, err
		}
		e, ok := parse(head, whole)
		if ok {
			return e, nil
		}
		if r.nonsense++; r.nonsense > nonsenseMax {
			return event{}, errNonsense
		}
	}
}

// line reads one line without its newline, or its beginning: whole says which. A last line without an end is a line.
func (r *reader) line() (head []byte, whole bool, err error) {
	limit, length := headBytesMax, 0
	whole = true
	for {
		piece, err := r.in.ReadSlice('\n')
		if length == 0 {
			if keep, ok := keeps[typeOf(piece)]; ok {
				limit = max(keep, len(piece))
			}
		}
		if length += len(piece); length > lineBytesMax {
			return nil, false, errNonsense
		}
		if whole = whole && len(head)+len(piece) <= limit; whole {
			head = append(head, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			return bytes.TrimSuffix(head, []byte("\n")), whole, nil
		case length > 0 && errors.Is(err, io.EOF):
			return head, whole, nil
		default:
			return nil, false, err
		}
	}
}

// typePrefix is how pi begins every line that it writes.
var typePrefix = []byte(`{"type":"`)

// typeOf reads the type at the beginning of a line; "" if it is not there.
func typeOf(line []byte) string {
	rest, ok := bytes.CutPrefix(line, typePrefix)
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 || end > 64 {
		return ""
	}
	return string(rest[:end])
}

// parse reads a line, or the type of one that was cut; false if it is no event.
func parse(line []byte, whole bool) (e event, ok bool) {
	if e.Type = typeOf(line); e.Type == "message_update" {
		if u, ok := begun(line); ok {
			e.Update = u
			return e, true
		}
	}
	if !whole {
		if e.Type == "tool_execution_end" {
			e.ToolCallID = callOf(line)
		}
		return e, e.Type != ""
	}
	e = event{}
	if trimmed := bytes.TrimSpace(line); len(trimmed) == 0 || trimmed[0] != '{' {
		return e, false
	}
	err := json.Unmarshal(line, &e)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) { // an event of another kind, with a field of ours
		err = nil
	}
	return e, err == nil
}

// begun reads a message_update from its beginning, as far as what is new; false if it does not stand there.
func begun(line []byte) (u update, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	for _, want := range []json.Token{json.Delim('{'), "type", "message_update", "assistantMessageEvent", json.Delim('{')} {
		if is, err := d.Token(); err != nil || is != want {
			return u, false
		}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return u, false
		}
		switch name {
		case "type":
			err = d.Decode(&u.Type)
		case "contentIndex":
			err = d.Decode(&u.ContentIndex)
		case "delta":
			return u, d.Decode(&u.Delta) == nil && u.Type != ""
		default: // of no delta
			return u, u.Type != "" && !strings.HasSuffix(u.Type, "_delta")
		}
		if err != nil {
			return u, false
		}
	}
	return u, u.Type != ""
}

// callOf reads whose end a tool_execution_end tells from its beginning; "" if it does not stand there.
func callOf(line []byte) (id string) {
	d := json.NewDecoder(bytes.NewReader(line))
	for _, want := range []json.Token{json.Delim('{'), "type", "tool_execution_end", "toolCallId"} {
		if is, err := d.Token(); err != nil || is != want {
			return ""
		}
	}
	if d.Decode(&id) != nil {
		return ""
	}
	return id
}

// text is the message of a question.
func (e event) text() (s string) {
	_ = json.Unmarshal(e.Message, &s) // an object is no text
	return s
}
