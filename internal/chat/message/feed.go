package message

import (
	"context"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
)

// Event is what happens in a chat while somebody watches. Rows are the truth: who missed an event finds in them what it said.
type Event struct {
	Chat id.Chat
	At   time.Time
	Kind EventKind
	Turn int
	Text string             // a piece of what the agent says
	Tool *conversation.Tool // that has begun; nil: none is in flight
	Rows Rows               // of this chat

	once [][]byte // see Once
	mu   sync.Mutex
}

// Once returns what make makes of the n-th thing that the event tells, made once for all who are told it.
func (e *Event) Once(n int, make func() ([]byte, error)) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.once) <= n {
		e.once = append(e.once, nil)
	}
	if e.once[n] != nil {
		return e.once[n], nil
	}
	made, err := make()
	e.once[n] = made
	return made, err
}

// EventKind is what an event tells.
type EventKind string

const (
	RowsMoved EventKind = "rows" // a message came, was answered, or waits otherwise
	TurnBegan EventKind = "turn"
	Said      EventKind = "said" // the agent says something
	ToolMoved EventKind = "tool" // a tool began, or is over
)

// A reader may be behind by so many events, and so many bytes of what they say; what is more it finds in the rows.
const (
	eventsMax = 1024
	behindMax = 4 << 20
)

// Feed hands events to who watches a chat. It never blocks who publishes. The zero value is ready.
type Feed struct {
	mu    sync.Mutex
	subs  map[id.Chat]map[*Subscription]bool
	count int // of all
}

// Subscription is one who watches. It hears what rows say once it follows them.
type Subscription struct {
	chat    id.Chat
	queue   []*Event
	bytes   int
	ready   chan struct{}
	follows bool
	behind  bool // it was too slow: what its rows said was dropped
}

// Subscribe begins to watch a chat.
func (f *Feed) Subscribe(chat id.Chat) *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &Subscription{chat: chat, ready: make(chan struct{}, 1)}
	if f.subs == nil {
		f.subs = map[id.Chat]map[*Subscription]bool{}
	}
	if f.subs[chat] == nil {
		f.subs[chat] = map[*Subscription]bool{}
	}
	f.subs[chat][s] = true
	f.count++
	return s
}

// Watchers is how many watch, of all chats.
func (f *Feed) Watchers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// Follow has it hear from now on what rows say. Whoever calls it after the transaction in which they read the rows (store.Tx) has heard
// of each commit once: of those before it from the rows, of those after it from events.
func (f *Feed) Follow(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.follows = true
}

// Unsubscribe ends it.
func (f *Feed) Unsubscribe(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs[s.chat][s] {
		f.count--
	}
	delete(f.subs[s.chat], s)
	if len(f.subs[s.chat]) == 0 {
		delete(f.subs, s.chat)
	}
}

// Moved tells who follows the rows of a transaction's chats of them.
func (f *Feed) Moved(at time.Time, rows Rows) {
	by := map[id.Chat]Rows{}
	for _, m := range rows.Ins {
		of := by[m.Chat]
		of.Ins = append(of.Ins, m)
		by[m.Chat] = of
	}
	for _, o := range rows.Outs {
		of := by[o.Chat]
		of.Outs = append(of.Outs, o)
		by[o.Chat] = of
	}
	for chat, of := range by {
		f.Publish(&Event{Chat: chat, At: at, Kind: RowsMoved, Rows: of})
	}
}

// Publish tells who watches the chat. All of them are told the same event.
func (f *Feed) Publish(e *Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	bytes := len(e.Text)
	for _, m := range e.Rows.Ins {
		bytes += len(m.Text)
	}
	for _, o := range e.Rows.Outs {
		bytes += len(o.Text)
	}
	for s := range f.subs[e.Chat] {
		switch {
		case e.Kind == RowsMoved && !s.follows:
			continue
		case len(s.queue) < eventsMax && (s.bytes == 0 || s.bytes+bytes <= behindMax):
			s.queue, s.bytes = append(s.queue, e), s.bytes+bytes
		default: // the rows have what this reader was too slow for
			s.queue, s.bytes, s.follows, s.behind = nil, 0, false, true
		}
		select {
		case s.ready <- struct{}{}:
		default:
		}
	}
}

// Next returns what has happened, waiting for it, and whether it is behind: then the rows have what was before that, and are to be read,
// and followed, again. It returns nothing when ctx ends.
func (f *Feed) Next(ctx context.Context, s *Subscription) (events []*Event, behind bool) {
	for {
		f.mu.Lock()
		events, behind = s.queue, s.behind
		s.queue, s.bytes, s.behind = nil, 0, false
		f.mu.Unlock()
		if len(events) > 0 || behind {
			return events, behind
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-s.ready:
		}
	}
}
