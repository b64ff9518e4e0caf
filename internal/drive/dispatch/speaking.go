package dispatch

import (
	"context"
	"maps"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/store"
)

// speaking knows when agents spoke last in the turns of this daemon: who watches reads it before it is a message. It has one time for each
// chat, of as long as the daemon lives.
type speaking struct {
	mu   sync.Mutex
	last map[id.Chat]time.Time
}

func (s *speaking) note(in id.Chat, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[id.Chat]time.Time{}
	}
	s.last[in] = at
}

// latest is when an agent spoke last in a conversation, of whichever group; zero if none has.
func (s *speaking) latest(ctx context.Context, tx store.Tx, where id.Conversation) (at time.Time, err error) {
	s.mu.Lock()
	last := maps.Clone(s.last)
	s.mu.Unlock()
	for in, spoke := range last {
		chat, err := tx.Chat(ctx, in)
		if problem.KindOf(err) == problem.NotFound {
			continue
		}
		if err != nil {
			return at, err
		}
		if chat.Conversation == where && spoke.After(at) {
			at = spoke
		}
	}
	return at, nil
}
