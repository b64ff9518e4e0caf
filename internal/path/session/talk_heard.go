package session

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/secret"
)

// saidMax is the most of what is taken of one turn: what an agent may say, and the words that it was cut or that a hook failed.
const saidMax = agent.TextBytesMax + 8<<10

// hearing takes what the program of a conversation tells beside its answers: what its agent says, and which tools it uses. It belongs
// to the one who reads the program's stdout.
type hearing struct {
	secrets *secret.Scanner
	said    func(agent.Text)     // may be nil
	tool    func(agent.ToolCall) // may be nil

	turn  int              // that the pieces are of; 0 = none
	piece int              // number of the last that was taken
	size  int              // bytes of them
	clean *secret.Redactor // takes secrets out of all pieces as one text; nil between turns
	ready []byte           // what it gave out, and nobody was told yet
	told  int              // number of the last that was told
}

// hear takes one whole line; whatever is not clearly an event is none.
func (h *hearing) hear(line []byte) {
	if e, ok := parseText(line); ok {
		h.text(e)
		return
	}
	if _, ok := parseToolCall(line); ok && h.tool != nil {
		if c, ok := parseToolCall(h.secrets.RedactJSON(line)); ok {
			h.tool(c)
		}
	}
}

// text takes a piece. A secret that comes in two of them is none the less one, so a word that is not over waits.
func (h *hearing) text(e agent.Text) {
	if h.said == nil || e.Turn < h.turn || e.Turn == h.turn && h.clean == nil {
		return
	}
	if e.Turn > h.turn {
		h.over()
		h.turn, h.piece, h.size, h.told = e.Turn, 0, 0, 0
		h.clean = h.secrets.Redactor(h)
	}
	if e.Number != h.piece+1 || h.size+len(e.Text) > saidMax {
		return
	}
	h.piece, h.size = e.Number, h.size+len(e.Text)
	_, _ = io.WriteString(h.clean, e.Text) // it is given to us, and we take everything
	_ = h.clean.Flush()
	h.tell(false)
}

// Write takes what holds no secret.
func (h *hearing) Write(p []byte) (int, error) {
	h.ready = append(h.ready, p...)
	return len(p), nil
}

// ended takes the end of a turn; what comes of it later is dropped.
func (h *hearing) ended(turn int) {
	h.over()
	h.turn = max(h.turn, turn)
}

// over gives out the rest of what was said.
func (h *hearing) over() {
	if h.clean != nil {
		_ = h.clean.Close()
		h.tell(true)
		h.clean = nil
	}
}

// tell gives out what is ready, whole characters unless it is the last.
func (h *hearing) tell(last bool) {
	ready := h.ready
	if !last {
		ready = inert.Whole(ready)
	}
	if len(ready) == 0 {
		return
	}
	h.told++
	h.said(agent.Text{Type: agent.TextType, Turn: h.turn, Number: h.told, Text: strings.ToValidUTF8(string(ready), "\uFFFD")})
	h.ready = append(h.ready[:0], h.ready[len(ready):]...)
}

// parseText reads a line of stdout; whatever is not clearly a piece of what an agent says is plain output.
func parseText(line []byte) (e agent.Text, ok bool) {
	if !strictly(line, agent.TextType, &e) {
		return agent.Text{}, false
	}
	if e.Type != agent.TextType || e.Turn < 1 || e.Turn > turnMax || e.Number < 1 || e.Text == "" || strings.ContainsRune(e.Text, 0) {
		return agent.Text{}, false
	}
	return e, true
}

// parseToolCall reads a line of stdout; whatever is not clearly a tool call that begins or ends is plain output.
func parseToolCall(line []byte) (c agent.ToolCall, ok bool) {
	if !strictly(line, agent.ToolCallType, &c) {
		return agent.ToolCall{}, false
	}
	if c.Type != agent.ToolCallType || c.Turn < 1 || c.Turn > turnMax || c.ID == "" || c.TimeoutMS < 0 || c.Failed && !c.Over {
		return agent.ToolCall{}, false
	}
	if len(c.ID) > agent.ToolIDBytesMax || len(c.Kind) > agent.TitleBytesMax ||
		len(c.Title) > 2*agent.TitleBytesMax { // a secret's place may be longer than it was
		return agent.ToolCall{}, false
	}
	c.ID, c.Kind, c.Title = inert.Line(c.ID), inert.Line(c.Kind), inert.Line(c.Title)
	return c, true
}

// strictly reads a line that is one flat JSON object of a type, with no field that its struct does not have.
func strictly(line []byte, kind string, into any) bool {
	line = bytes.TrimSpace(line)
	if len(line) > LineBytesMax || !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"`+kind+`"`)) {
		return false
	}
	if !utf8.Valid(line) || depth(line) > 1 {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if d.Decode(into) != nil {
		return false
	}
	_, err := d.Token()
	return err == io.EOF // one object, and nothing behind it
}

// Beginnings of the lines that an adapter writes for the host alone; no line of an agent begins with a brace.
var (
	textLine = []byte(`{"type":"` + agent.TextType + `",`)
	toolLine = []byte(`{"type":"` + agent.ToolCallType + `",`)
)

// forHost reports whether a line says to a person what the lines around it have said already.
func forHost(line []byte) bool {
	return bytes.HasPrefix(line, textLine) || bytes.HasPrefix(line, toolLine)
}
