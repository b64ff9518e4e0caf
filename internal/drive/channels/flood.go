package channels

import (
	"maps"
	"sync"
	"time"

	"sallyport/internal/base/id"
)

// What one person may say in one conversation: so much at once, and then one message every so often. Strangers share one measure, so that
// they take none of anybody's. Words that decide and codes are not counted.
const (
	talkMost  = 6000
	talkEvery = time.Second
	// talkersMax is how many are remembered; whoever has said nothing for long is forgotten first.
	talkersMax = 10_000
)

// talker is somebody in a conversation.
type talker struct {
	where  id.Conversation
	person id.Person // "" = all strangers
}

// floods counts what people say.
type floods struct {
	mu sync.Mutex
	by map[talker]time.Time // when all that they have said is forgotten
}

// room reports whether somebody may say one more thing.
func (f *floods) room(t talker, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by[t].Sub(now) <= (talkMost-1)*talkEvery
}

// count counts one more message.
func (f *floods) count(t talker, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.by == nil {
		f.by = map[talker]time.Time{}
	}
	if len(f.by) >= talkersMax {
		maps.DeleteFunc(f.by, func(_ talker, free time.Time) bool { return free.Before(now) })
	}
	free := f.by[t]
	if free.Before(now) {
		free = now
	}
	f.by[t] = free.Add(talkEvery)
}
