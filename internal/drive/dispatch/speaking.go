package dispatch

import (
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/id"
)

// speaking knows what agents said last in the turns of this daemon: who watches reads it before it is a message. It has one speech for each
// conversation, of as long as the daemon lives.
type speaking struct {
	mu   sync.Mutex
	last map[id.Conversation]speech
}

// speech is what was said last in a conversation, of whichever group the agents are.
type speech struct {
	at   time.Time
	text string // the end of it, in small letters
}

// speechMax is how much of a speech is kept, in bytes.
const speechMax = 4 << 10

func (s *speaking) note(in id.Conversation, at time.Time, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[id.Conversation]speech{}
	}
	text = s.last[in].text + strings.ToLower(text)
	s.last[in] = speech{at, strings.Clone(text[max(0, len(text)-speechMax):])}
}

// has reports whether an agent has spoken in a conversation after a time, with a word in it, which is in small letters.
func (s *speaking) has(in id.Conversation, after time.Time, word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[in]
	return last.at.After(after) && strings.Contains(last.text, word)
}
