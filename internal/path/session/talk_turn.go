package session

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
)

// turnMax is the highest number that a turn has.
const turnMax = 10_000

// parseTurnEnd reads a line of stdout; whatever is not clearly the end of a turn is plain output.
func parseTurnEnd(line []byte) (agent.TurnEnd, bool) {
	line = bytes.TrimSpace(line)
	if len(line) > LineBytesMax || !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`"`+agent.TurnEndType+`"`)) {
		return agent.TurnEnd{}, false
	}
	if !utf8.Valid(line) || depth(line) > 1 {
		return agent.TurnEnd{}, false
	}
	var e agent.TurnEnd
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return agent.TurnEnd{}, false
	}
	if _, err := d.Token(); err != io.EOF { // one object, and nothing behind it
		return agent.TurnEnd{}, false
	}
	switch e.Outcome {
	case agent.TurnDone, agent.TurnFailed, agent.TurnCancelled:
	default:
		return agent.TurnEnd{}, false
	}
	if e.Type != agent.TurnEndType || e.Turn < 1 || e.Turn > turnMax || strings.ContainsRune(e.Reason+e.Says, 0) || len(e.Says) > agent.SaysBytesMax {
		return agent.TurnEnd{}, false
	}
	if len(e.Reason) > agent.ReasonBytesMax {
		e.Reason = strings.ToValidUTF8(e.Reason[:agent.ReasonBytesMax], "")
	}
	e.Reason = inert.Line(e.Reason)
	return e, true
}

// said reports whether a line of stdout is for the host and for no person: an answer, or the end of a turn.
func said(line []byte) bool {
	if _, ok := parseTurnEnd(line); ok {
		return true
	}
	_, ok := parseAnswer(line)
	return ok
}

// Turns tells the end of each turn of a program with Turns, at most the latest of those that nobody has taken yet. It is
// never closed. A nil Talk has none.
func (t *Talk) Turns() <-chan agent.TurnEnd {
	if t == nil {
		return nil
	}
	return t.turns
}

// Turning reports whether a turn is under way as far as is known: of the first words, or of what the program was given since.
func (t *Talk) Turning() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turning
}

// Finish ends the program's stdin on purpose, once it has all that was sent before: nothing more is wanted of it. What is
// sent later is not delivered.
func (t *Talk) Finish() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	t.rouse()
}

// turnOver hands the end of a turn to who takes it; the numbers only grow.
func (t *Talk) turnOver(e agent.TurnEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Turn <= t.turn {
		return
	}
	t.turn, t.turning = e.Turn, e.More
	select {
	case <-t.turns: // it is too old to matter: who takes it looks at what stands now
	default:
	}
	t.turns <- e
}
