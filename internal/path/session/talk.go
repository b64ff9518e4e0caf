package session

import (
	"io"
	"slices"
	"sync"
	"time"

	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// What may wait for a program to read it; more is not delivered.
const (
	queueMax      = 64
	queueBytesMax = 1 << 20
	chatBytesMax  = 8 << 20 // in a conversation, where words are longer
	chatTurnsMax  = 64      // ends of turns that nobody has taken
)

// Talk is the host's side of a conversation with a program: messages go to its
// stdin, one JSON object a line, and answers come out of its stdout (SV-083).
// It serves one session. The zero value is not usable; a nil Talk speaks to a
// program that takes no messages: nothing is delivered.
//
// The methods that send may be called from several goroutines, before the session
// runs, while it stands frozen, and after its end. None waits for a program that
// does not read for longer than its context and the durations here say.
//
// Delivered means that every byte of the message lies in the pipe that is the
// program's stdin, or that the program answered it. It does not mean that the
// program has read it: a frozen or busy one may still have it before it. A message
// that is not delivered when its method returns is taken back, unless the pipe
// has part of it already.
type Talk struct {
	// Set before anything is said; NewTalk has the defaults.
	AnswerWithin time.Duration // for the answer to a violation or a word; then a violation is sent again; default 5 s
	Retries      int           // how often a violation without an answer is sent again; default 2
	PauseWithin  time.Duration // for the answer to a pause; default 10 s (SV-105)

	mu      sync.Mutex
	queue   []*parcel
	bytes   int     // in queue
	current *parcel // what the pump reads, or has read and not come back from
	rest    []byte  // of current
	waiters []*waiter
	paused  map[string]bool // checkpoints whose pause the pump has begun to read
	words   int             // numbers of what was told
	note    func(string)    // into the transcript; nil unless the session runs
	closed  bool
	chat    bool // the program serves a conversation
	// Of a program with turns.
	turn     int  // number of the last that has ended
	turning  bool // words were given since
	finished bool // stdin ends once the queue is empty
	turns    chan agent.TurnEnd
	wake     chan struct{} // holds one token when there may be something to read
	over     chan struct{} // closed with the session
}

// NewChatTalk returns one for a program that serves a conversation (Program.Chat): no turn is under way before words are given, they
// may be longer, no end of a turn is lost, and an agent has the time to answer that its program may take to begin.
func NewChatTalk() *Talk {
	t := NewTalk()
	t.AnswerWithin = stuck.StartMax
	t.chat, t.turning, t.turns = true, false, make(chan agent.TurnEnd, chatTurnsMax)
	return t
}

// room is how many bytes may wait for the program to read them.
func (t *Talk) room() int {
	if t.chat {
		return chatBytesMax
	}
	return queueBytesMax
}

// NewTalk returns a conversation for Running.Talk.
func NewTalk() *Talk {
	return &Talk{
		AnswerWithin: 5 * time.Second, Retries: 2, PauseWithin: 10 * time.Second,
		turning: true, turns: make(chan agent.TurnEnd, 1),
		paused: map[string]bool{}, wake: make(chan struct{}, 1), over: make(chan struct{}),
	}
}

var (
	_ io.Reader   = (*Talk)(nil)
	_ io.WriterTo = (*Talk)(nil)
)

// parcel is one message on its way.
type parcel struct {
	name  string // for the transcript; "" = the program's own stdin
	line  []byte
	pause string  // the checkpoint it asks to pause for
	words bool    // they begin a turn
	from  *waiter // who waits for its answer; nil = nobody
	taken chan struct{}
}

// open lets the session begin: first goes to the program before any message.
func (t *Talk) open(first []byte, note func(string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note = note
	if len(first) > 0 {
		t.queue = slices.Insert(t.queue, 0, &parcel{line: first, taken: make(chan struct{})})
		t.bytes += len(first)
	}
	t.rouse()
}

// close ends the conversation: the program's stdin ends and nobody waits any more.
// Closing twice is as good as once.
func (t *Talk) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		close(t.over)
	}
	t.queue, t.bytes, t.note = nil, 0, nil
}

// rouse is called with mu held.
func (t *Talk) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Read is how a sandbox takes the program's stdin. That it comes back says that the
// pipe took what it read before. It returns io.EOF once the session has ended.
func (t *Talk) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		if n, err := t.read(b); n > 0 || err != nil {
			return n, err
		}
		select {
		case <-t.wake:
		case <-t.over:
		}
	}
}

func (t *Talk) read(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && len(t.rest) == 0 {
		t.take(t.current)
		t.current = nil
	}
	if t.closed {
		return 0, io.EOF
	}
	if t.current == nil && len(t.queue) == 0 && t.finished {
		return 0, io.EOF
	}
	if t.current == nil && len(t.queue) > 0 {
		p := t.queue[0]
		t.queue = slices.Delete(t.queue, 0, 1)
		t.bytes -= len(p.line)
		t.current, t.rest = p, p.line
		if p.from != nil {
			p.from.begun = true
		}
		if p.pause != "" {
			t.paused[p.pause] = true
		}
	}
	n := copy(b, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// take records that a parcel is delivered; it is called with mu held.
func (t *Talk) take(p *parcel) {
	if is(p.taken) {
		return
	}
	close(p.taken)
	t.turning = t.turning || p.words
	if p.name != "" && t.note != nil {
		t.note("sent " + p.name)
	}
}

// WriteTo is Read for a pump that is io.Copy: a fault tells that nobody reads any more. After Finish there is none, and
// what was sent before may still be answered.
func (t *Talk) WriteTo(w io.Writer) (int64, error) {
	n, err := io.Copy(w, struct{ io.Reader }{t})
	if err != nil {
		t.close()
	}
	return n, err
}

// send puts a parcel into the queue. It reports false if the queue is full or the
// session has ended. A resume has room always: it follows a pause that was read.
func (t *Talk) send(p *parcel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.finished || len(t.queue) >= queueMax || t.bytes+len(p.line) > t.room() {
		return false
	}
	t.push(p)
	return true
}

// push is called with mu held.
func (t *Talk) push(p *parcel) {
	p.taken = make(chan struct{})
	t.queue = append(t.queue, p)
	t.bytes += len(p.line)
	t.rouse()
}

// withdraw takes back a parcel that the pump has not begun to read.
func (t *Talk) withdraw(p *parcel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.queue, p); i >= 0 {
		t.queue = slices.Delete(t.queue, i, i+1)
		t.bytes -= len(p.line)
	}
}
