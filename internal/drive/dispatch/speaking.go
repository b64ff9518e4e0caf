package dispatch

import (
	"sync"
	"time"

	"sallyport/internal/base/id"
)

// speaking knows what agents say in the turns that are under way: who watches reads it before it is a message. It has one speech for each
// chat, of as long as the daemon lives.
type speaking struct {
	mu   sync.Mutex
	said map[id.Conversation]map[id.Chat]speech
}

// speech is what an agent has said in its turn, or in its last one.
type speech struct {
	at   time.Time // of its last words
	text []byte    // at most saidMax
}

// next begins another turn of a chat.
func (s *speaking) next(in id.Conversation, of id.Chat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.said[in], of)
}

func (s *speaking) note(in id.Conversation, of id.Chat, at time.Time, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said == nil {
		s.said = map[id.Conversation]map[id.Chat]speech{}
	}
	if s.said[in] == nil {
		s.said[in] = map[id.Chat]speech{}
	}
	s.said[in][of] = speech{at, append(s.said[in][of].text, text...)}
}

// since returns what agents say in a conversation in turns in which they spoke after a time.
func (s *speaking) since(in id.Conversation, after time.Time) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, said := range s.said[in] {
		if said.at.After(after) {
			all = append(all, string(said.text))
		}
	}
	return all
}
