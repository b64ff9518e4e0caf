package prompt

import "slices"

// Selection parts the rows that wait.
type Selection struct {
	Shown  []Message // in the order of time
	Folded []Message // older chat: counted in the prompt, and never a reason to wake again (CH-014b)
	Later  []Message // tasks, system messages and answers that wait for the next turn
}

// Select chooses what a wake shows: the newest limit chat messages, however many there are, and what is not chat beside them, so that
// neither takes the other's place (CH-014, CH-021). limit 0 is the default.
//
// A message that wakes comes before context: a mention is not folded because others went on talking. What is not chat carries
// work or an answer, and is never folded: the oldest come first, the rest waits for the next turn.
func Select(rows []Message, limit int) (s Selection) {
	if limit <= 0 {
		limit = MessagesDefault
	}
	limit = min(limit, MessagesMax)
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b Message) int { return a.At.Compare(b.At) })

	waking := 0
	for _, m := range rows {
		if m.chat() && m.Trigger {
			waking++
		}
	}
	context, others := max(0, limit-waking), OthersMax

	shown := make([]bool, len(rows))
	for i, m := range rows {
		if !m.chat() && others > 0 {
			shown[i] = true
			others--
		}
	}
	for i, m := range slices.Backward(rows) {
		places := &context
		if m.Trigger {
			places = &limit
		}
		if m.chat() && *places > 0 {
			shown[i] = true
			*places--
		}
	}

	for i, m := range rows {
		switch {
		case shown[i]:
			s.Shown = append(s.Shown, m)
		case m.chat():
			s.Folded = append(s.Folded, m)
		default:
			s.Later = append(s.Later, m)
		}
	}
	return s
}

// chat reports whether a message is somebody's words; a kind that nobody knows is no more than that.
func (m Message) chat() bool {
	return m.Kind != Task && m.Kind != System && m.Kind != Answer
}
