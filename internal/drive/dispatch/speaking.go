package dispatch

import (
	"sync"
	"time"

	"sallyport/internal/base/id"
)

// speaking knows when agents spoke last in the turns of this daemon: who watches reads it before it is a message. It has one time for each
// conversation, of as long as the daemon lives.
type speaking struct {
	mu   sync.Mutex
	last map[id.Conversation]time.Time
}

func (s *speaking) note(in id.Conversation, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[id.Conversation]time.Time{}
	}
	s.last[in] = at
}

// latest is when an agent spoke last in a conversation, of whichever group; zero if none has.
func (s *speaking) latest(in id.Conversation) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[in]
}
