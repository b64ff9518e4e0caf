package cli

import (
	"slices"
	"strings"
)

const internalBegins, internalEnds = "<internal>", "</internal>"

// visible is what is shown of what an agent has said so far: what it says to itself alone is left out, also while it says it.
func visible(said string) string {
	var b strings.Builder
	for {
		before, rest, begun := strings.Cut(said, internalBegins)
		b.WriteString(before)
		_, after, closed := strings.Cut(rest, internalEnds)
		if !begun || !closed {
			break
		}
		said = after
	}
	text := b.String()
	for n := min(len(internalBegins)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, internalBegins[:n]) {
			text = text[:len(text)-n]
			break
		}
	}
	return strings.TrimSpace(text)
}

// words is what an agent says in a turn, as far as it is on the screen.
type words struct {
	said  string
	above []string // rows that have left the foot and stay as they are
}

// rows are those of a text of an agent.
func agentRows(s sheet, text string) []string {
	if text == "" {
		return nil
	}
	var b strings.Builder
	s.w = &b
	s.quote(text)
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// live returns the rows that may still change, at most so many; leave are those that have to stay as they are now.
func (w *words) live(s sheet, most int) (leave, live []string) {
	rows := agentRows(s, visible(w.said))
	rows = rows[min(len(w.above), len(rows)):]
	if over := len(rows) - most; over > 0 {
		leave, rows = rows[:over], rows[over:]
		w.above = append(w.above, leave...)
	}
	return leave, rows
}

// whole returns what has to be printed for a text to be there as it was sent: its rows beyond those that stay, or all of them if these
// are others.
func (w *words) whole(s sheet, sent string) (rows []string, other bool) {
	rows = agentRows(s, sent)
	if n := len(w.above); n <= len(rows) && slices.Equal(rows[:n], w.above) {
		return rows[n:], false
	}
	return rows, true
}

// begins reports whether a text that was sent is what was said so far, and perhaps more.
func (w *words) begins(sent string) bool {
	said := visible(w.said)
	return said != "" && strings.HasPrefix(sent, said)
}
