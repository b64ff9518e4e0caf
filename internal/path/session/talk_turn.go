package session

import (
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
)

const (
	turnMax      = 1 << 30 // the highest number that a turn has
	turnOfChange = 10_000  // and one of a program that does not serve a conversation
)

// parseTurnEnd reads a line of stdout; whatever is not clearly the end of a turn is plain output.
func parseTurnEnd(line []byte) (agent.TurnEnd, bool) {
	var e agent.TurnEnd
	if !strictly(line, agent.TurnEndType, &e) {
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

// Turns tells the end of each turn of a program with Turns, at most the latest of those that nobody has taken yet; in a conversation
// each. It is never closed. A nil Talk has none.
func (t *Talk) Turns() <-chan agent.TurnEnd {
	if t == nil {
		return nil
	}
	return t.turns
}

// Turn is the number of the last turn that has ended; 0 before the first has, and of a nil Talk.
func (t *Talk) Turn() int {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn
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
	if e.Turn <= t.turn || !t.chat && e.Turn > turnOfChange {
		return
	}
	t.turn, t.turning = e.Turn, e.More
	if len(t.turns) == cap(t.turns) {
		select {
		case <-t.turns: // it is too old to matter: who takes it looks at what stands now
		default:
		}
	}
	t.turns <- e
}
