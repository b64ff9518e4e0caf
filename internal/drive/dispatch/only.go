package dispatch

import (
	"sync/atomic"

	"sallyport/internal/base/id"
)

// only says which chats may begin a turn: each, one, or none.
type only struct {
	chat atomic.Pointer[id.Chat] // nil = each
	poke func()
}

// Begin has no other chat than this begin a turn, "" = none, until end is called. Turns that are under way go on.
func (o *only) Begin(chat id.Chat) (end func()) {
	o.chat.Store(&chat)
	return func() {
		o.chat.Store(nil)
		o.poke()
	}
}

// rests reports whether a chat is to begin no turn now.
func (o *only) rests(chat id.Chat) bool {
	one := o.chat.Load()
	return one != nil && *one != chat
}
