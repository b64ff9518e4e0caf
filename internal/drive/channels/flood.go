package channels

import (
	"maps"
	"sync"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/port/channel"
)

// What one person may say in one conversation: so many messages at once, and then one every so often. A long one counts as several, so that
// nobody fills the disk. Strangers share one measure, so that they take none of anybody's. What is dropped has a row, so that it is known when it
// comes again. In a flood it is counted alone: that of one who has said too much, and that of strangers when there is more of it in a channel
// than one person may say. What decides has a measure of its own: who has
// talked too much can still say no. Being told why it decides nothing is talk.
const (
	talkMost  = 6000
	talkEvery = time.Second
	talkBytes = 512 // that count as one message
	// talkersMax is how many are remembered; whoever has said nothing for long is forgotten first.
	talkersMax = 10_000
)

// talker is somebody in a conversation.
type talker struct {
	where  id.Conversation
	person id.Person // "" = all strangers
	decide bool      // it is the measure of what they decide
}

// floods counts what people say.
type floods struct {
	mu   sync.Mutex
	by   map[talker]time.Time // when all that they have said is forgotten
	rows map[dropped]int64    // of what was dropped last
}

// dropped is what is dropped so often that it is counted together.
type dropped struct {
	of     talker
	reason string
}

// row is the row that something which is dropped is counted with; 0 = it has one of its own, which next is counted with.
func (f *floods) row(of dropped, own int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rows == nil || len(f.rows) >= talkersMax {
		f.rows = map[dropped]int64{}
	}
	if own != 0 {
		f.rows[of] = own
	}
	return f.rows[of]
}

// measure is how long it takes until something that was said is forgotten.
func measure(e channel.Event) time.Duration {
	bytes := len(e.Text)
	if e.Quote != nil {
		bytes += len(e.Quote.Text)
	}
	return time.Duration(1+bytes/talkBytes) * talkEvery
}

// room reports whether somebody may say something of such a measure.
func (f *floods) room(t talker, measure time.Duration, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.by[t].Sub(now), 0) <= talkMost*talkEvery-measure
}

// count counts what was said.
func (f *floods) count(t talker, measure time.Duration, now time.Time) {
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
	f.by[t] = free.Add(measure)
}
