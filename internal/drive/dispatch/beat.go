package dispatch

import (
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/chat/message"
	"sallyport/internal/drive/ledger"
	path "sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// up is the time since a moment before the dispatcher was made, by a clock that nobody can set and that stands while the machine sleeps.
func (d *Dispatcher) up() time.Duration { return time.Since(d.began) + time.Second }

// beat is what a session gives as signs of life, and what its agent says in a turn. Its methods are called by whoever hears something.
type beat struct {
	d    *Dispatcher
	chat conversation.Chat // as it was when its session began

	mu          sync.Mutex
	turn        int // of the chat
	said        []byte
	event       time.Duration
	tools       []running // in flight, the oldest first: an agent may use several at once
	door        stuck.Door
	interrupted time.Duration
	moved       chan struct{} // holds one token when the oldest tool is another
	trying      bool          // the turn shows whether the agent answers: nobody is told of it, and no tool of the host works in it
	line        string        // that its program printed last
}

// running is a tool in flight.
type running struct {
	*conversation.Tool
	up time.Duration // when it began
}

func newBeat(d *Dispatcher, chat conversation.Chat) *beat {
	return &beat{d: d, chat: chat, moved: make(chan struct{}, 1)}
}

// begins hears that the session runs, and returns since when. Its program may have printed something before.
func (b *beat) begins() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.event = b.d.up()
	return b.event
}

// next begins another turn.
func (b *beat) next(turn int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn, b.said, b.tools, b.interrupted = turn, nil, nil, 0
	b.d.speaking.next(b.chat.Conversation, b.chat.ID)
}

// saidMax is the most that one turn says.
const saidMax = 128 << 10

// say hears a piece of what the agent says.
func (b *beat) say(t agent.Text) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.event = b.d.up()
	if len(b.said)+len(t.Text) > saidMax {
		return // the adapter has said that it was cut
	}
	b.said = append(b.said, t.Text...)
	if b.trying {
		return
	}
	now := ledger.Now()
	b.d.speaking.note(b.chat.Conversation, b.chat.ID, now, t.Text)
	b.d.Feed.Publish(&message.Event{Chat: b.chat.ID, At: now, Kind: message.Said, Turn: b.turn, Text: t.Text})
}

// hear hears what the agent's program printed: a thought is a sign of life too. That the host said something, that the adapter took it, and
// what the adapter notes of itself is none: the host has caused that (CH-099).
func (b *beat) hear(l path.Line) {
	if l.Stream == "event" || l.ForHost() {
		return
	}
	text := strings.TrimSpace(l.Text)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.HasPrefix(text, notePrefix) {
		b.event = b.d.up()
	}
	if text != "" {
		b.line = inert.Short(text, lineMax)
	}
}

// lineMax is how much is kept of the last line that a program printed.
const lineMax = 300

// printed is the last line that the agent's program printed.
func (b *beat) printed() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.line
}

// onTrial begins, or ends, the turn that shows whether the agent answers.
func (b *beat) onTrial(trying bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying, b.tools, b.interrupted = trying, nil, 0
	if trying {
		b.said = nil
	}
}

// tries reports whether that turn is under way.
func (b *beat) tries() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trying
}

// use hears that a tool began or is over.
func (b *beat) use(t agent.ToolCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.event = b.d.up()
	before := b.oldest()
	b.tools = slices.DeleteFunc(b.tools, func(r running) bool { return r.ID == t.ID })
	if !t.Over {
		b.tools = append(b.tools, running{&conversation.Tool{
			ID: t.ID, Name: t.Kind, Title: t.Title, Started: ledger.Now(), Declared: time.Duration(t.TimeoutMS) * time.Millisecond,
		}, b.event})
	}
	now := b.oldest()
	if now == before || b.trying {
		return
	}
	b.d.Feed.Publish(&message.Event{Chat: b.chat.ID, At: ledger.Now(), Kind: message.ToolMoved, Turn: b.turn, Tool: now})
	select {
	case b.moved <- struct{}{}:
	default:
	}
}

// oldest is the tool in flight that began first, which people are shown; nil if none is.
func (b *beat) oldest() *conversation.Tool {
	if len(b.tools) == 0 {
		return nil
	}
	return b.tools[0].Tool
}

// ask hears that a request to the model begins; what it returns hears that it is over.
func (b *beat) ask() (over func()) {
	move := func(open int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.door.Open += open
		b.door.Moved = b.d.up()
	}
	move(1)
	return sync.OnceFunc(func() { move(-1) })
}

// moves hears that a byte of a request to the model moved.
func (b *beat) moves() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.door.Moved = b.d.up()
}

// wait hears for how long the model's endpoint bids wait: an agent that does so is not stuck.
func (b *beat) wait(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.door.Moved = b.d.up()
	b.door.Until = max(b.door.Until, b.door.Moved+d)
}

// words is what the agent has said in this turn.
func (b *beat) words() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.said)
}

// flight is the tool in flight that began first.
func (b *beat) flight() *conversation.Tool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.oldest()
}

// interrupt notes that the host has the turn interrupted.
func (b *beat) interrupt() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.interrupted = b.d.up()
}

// judge says what is to be done with the session (CH-090 to CH-101).
func (b *beat) judge(started time.Duration, fence int64, t *turn) stuck.Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := stuck.Session{Running: true, Started: started, Event: b.event, Door: b.door, Interrupted: b.interrupted, Fence: fence}
	for _, r := range b.tools {
		// Its name here is its kind. By its own name the session's adapter sees one that is off (CH-097).
		s.Tools = append(s.Tools, stuck.Tool{Name: r.Name, Started: r.up, Declared: r.Declared})
	}
	if t != nil {
		s.Rows = t.inProcess()
	}
	return stuck.Judge(stuck.Now{Up: b.d.up(), Wall: ledger.Now()}, s)
}
