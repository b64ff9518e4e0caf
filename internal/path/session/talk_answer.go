package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/internal/base/inert"
)

// Types of an agent's answers (SV-083).
const (
	pauseAck     = "pause_ack"
	violationAck = "violation_ack"
	tellAck      = "tell_ack"

	refused = "refused" // status of a tell_ack
)

const (
	answerDepthMax = 32
	// ResponseBytesMax is the most of an agent's own words that a Delivery holds.
	ResponseBytesMax = 4 << 10
)

// answer is what an agent wrote on its stdout, as one JSON object on a line of its own.
type answer struct {
	Type         string `json:"type"`
	CheckpointID string `json:"checkpoint_id"`     // of pause_ack and violation_ack
	Status       string `json:"status"`            // of pause_ack: paused; of tell_ack: refused, or ""
	Understood   bool   `json:"understood"`        // of violation_ack
	Action       string `json:"corrective_action"` // of violation_ack
	ID           string `json:"id"`                // of tell_ack
	Response     string `json:"response"`          // of tell_ack
	at           time.Time
}

// parseAnswer reads a line of stdout; whatever is not clearly an answer is plain output.
func parseAnswer(line []byte) (answer, bool) {
	line = bytes.TrimSpace(line)
	if len(line) > LineBytesMax || !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line, []byte(`_ack"`)) {
		return answer{}, false
	}
	if !utf8.Valid(line) || depth(line) > answerDepthMax {
		return answer{}, false
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, false
	}
	if strings.ContainsRune(a.Action+a.Response+a.CheckpointID+a.ID, 0) {
		return answer{}, false
	}
	switch a.Type {
	case pauseAck:
		return a, a.CheckpointID != "" && a.Status == "paused"
	case violationAck:
		a.Action = shorten(a.Action)
		return a, a.CheckpointID != ""
	case tellAck:
		a.Response = shorten(a.Response)
		return a, a.ID != ""
	}
	return answer{}, false
}

// depth returns how deep the brackets of a JSON text are nested at the most.
func depth(text []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// shorten cuts an agent's words at ResponseBytesMax, between two characters.
func shorten(s string) string {
	return inert.Head(s, ResponseBytesMax)
}

// waiter waits for one answer.
type waiter struct {
	kind, id string
	begun    bool          // the pump has begun to read what is to be answered
	done     chan struct{} // closed once answer is set
	answer   answer
}

// expect begins to wait for an answer; forget ends it.
func (t *Talk) expect(kind, id string) *waiter {
	w := &waiter{kind: kind, id: id, done: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters = append(t.waiters, w)
	return w
}

func (t *Talk) forget(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters = slices.DeleteFunc(t.waiters, func(have *waiter) bool { return have == w })
}

// hear is given every whole line of the program's stdout. Only the first answer to a
// message that the program can have read counts; all others are nothing but output.
func (t *Talk) hear(line []byte) {
	a, ok := parseAnswer(line)
	if !ok {
		return
	}
	id := a.CheckpointID
	if a.Type == tellAck {
		id = a.ID
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.waiters {
		if w.kind == a.Type && w.id == id && w.begun && !is(w.done) {
			w.answer, w.answer.at = a, time.Now()
			close(w.done)
			t.turning = t.turning || a.Type != pauseAck && a.Status != refused // its words are the agent's by now
			if t.current != nil && t.current.from == w {
				t.take(t.current) // what is answered was read, though the pump is not back yet
			}
		}
	}
}
