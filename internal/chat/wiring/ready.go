package wiring

import (
	"slices"
	"sync"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
)

// readyMax is how many conversations are kept.
const readyMax = 1000

// Ready keeps conversations as they were compiled: a pattern is compiled once, and not for each message. The zero value keeps none yet; several
// may use one at once.
type Ready struct {
	mu sync.Mutex
	of map[id.Conversation]Place
}

// Place is a conversation with the wirings that it has now, ready to route; fresh is that it was compiled for this.
func (r *Ready) Place(where conversation.Conversation, wirings []Wiring) (p Place, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, there := r.of[where.ID]
	if there && p.is(where, wirings) {
		return p, false
	}
	if r.of == nil || len(r.of) >= readyMax {
		r.of = map[id.Conversation]Place{}
	}
	p = Compile(where.Kind, where.Policy, wirings)
	r.of[where.ID] = p
	return p, true
}

// is reports whether a conversation with these wirings is compiled to this one.
func (p Place) is(where conversation.Conversation, wirings []Wiring) bool {
	return p.kind == where.Kind && p.policy == where.Policy &&
		slices.EqualFunc(p.heard, wirings, func(l listener, w Wiring) bool { return l.Wiring == w })
}
