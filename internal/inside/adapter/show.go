package adapter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
)

// What is shown of an agent is for a person to follow, not a record: it is bounded, so that chatter ends no session at its limit of output.
const (
	widthMax       = 200       // of a line of the agent's words; then it is broken at a space
	turnBytesMax   = 128 << 10 // of a turn
	allBytesMax    = 3 << 20   // of all turns; less than the usual limit of output
	titleMax       = 300
	endLineMax     = 12 << 10 // of a TurnEnd: the host hears no longer lines
	reasonBytesMax = agent.ReasonBytesMax
)

// Prefixes of what is not the agent's words.
const (
	thoughtPrefix = "~ "
	notePrefix    = "sallyport: "
	bracePrefix   = "> " // before words that begin as an answer would
)

// shown writes what an agent does as lines, and the adapter's answers as lines of their own.
type shown struct {
	mu      sync.Mutex
	out     io.Writer
	pending []byte // of a line of words or thoughts that is not over
	think   bool   // pending is a thought
	left    int    // bytes of this turn
	all     int    // bytes of all turns
	told    bool   // that no more of this turn is shown
	said    said   // what the host of a conversation is told
}

func newShown(out io.Writer) *shown { return &shown{out: out, left: turnBytesMax, all: allBytesMax} }

// converse has the host told what the agent says, as it says it or, with hold, at the end of each turn; no tool of off is to be used.
func (s *shown) converse(off []string, hold bool) {
	s.said = said{off: off, fired: make(chan string, 1), hold: hold}
	s.said.line = func(v any) { fmt.Fprintf(s.out, "%s\n", encoded(v)) }
	s.said.flush = func(do func()) stop {
		turn := s.said.turn
		return time.AfterFunc(sayWithin, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.said.turn == turn {
				do()
			}
		}).Stop
	}
}

var _ agent.Show = (*shown)(nil)

func (s *shown) Say(text string)   { s.words(text, false) }
func (s *shown) Think(text string) { s.words(text, true) }

func (s *shown) Tool(kind, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used(kind, title)
	s.said.apart = true
}

func (s *shown) Began(t agent.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used(t.Kind, t.Title)
	s.said.began(t)
}

func (s *shown) Ended(id string, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.ended(id, failed)
}

// used shows a tool call as a line; it is called with mu held.
func (s *shown) used(kind, title string) {
	s.flush()
	s.line("[" + inert.Cut(inert.Line(kind), 20) + "] " + inert.Cut(inert.Line(title), titleMax))
}

func (s *shown) Note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.line(notePrefix + inert.Cut(inert.Line(text), titleMax*2))
}

// words takes text as it comes, in pieces of any size, and shows every line once it is whole or long.
func (s *shown) words(text string, think bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !think {
		s.said.say(text)
	}
	if think != s.think {
		s.flush()
		s.think = think
	}
	for text != "" && !s.told {
		at := strings.IndexByte(text, '\n')
		piece := text
		if at >= 0 {
			piece = text[:at]
		}
		for room := widthMax - len(s.pending); len(piece) > room; room = widthMax - len(s.pending) {
			s.pending, piece = append(s.pending, piece[:max(room, 0)]...), piece[max(room, 0):]
			s.wrap()
		}
		s.pending = append(s.pending, piece...)
		if at < 0 {
			return
		}
		s.flush()
		text = text[at+1:]
	}
}

// wrap shows the beginning of a line that grew long: up to its last space, or all whole characters of it.
func (s *shown) wrap() {
	at := bytes.LastIndexByte(s.pending, ' ')
	if at < widthMax/2 {
		at = len(inert.Whole(s.pending))
	}
	rest := bytes.Clone(s.pending[at:])
	s.pending = s.pending[:at]
	s.flush()
	s.pending = append(s.pending, bytes.TrimPrefix(rest, []byte(" "))...)
}

// flush ends the line that is not over; it is called with mu held.
func (s *shown) flush() {
	text := strings.TrimRight(inert.Block(string(s.pending), widthMax*2), " \t")
	s.pending = s.pending[:0]
	switch {
	case text == "":
	case s.think:
		s.line(thoughtPrefix + text)
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		s.line(bracePrefix + text)
	default:
		s.line(text)
	}
}

// line writes one line if there is room for it; it is called with mu held.
func (s *shown) line(text string) {
	if s.told {
		return
	}
	cost := max(len(text)+1, 32)
	if cost > s.left || cost > s.all {
		s.told = true
		fmt.Fprintln(s.out, notePrefix+"no more of this turn is shown")
		return
	}
	s.left -= cost
	s.all -= cost
	fmt.Fprintln(s.out, text)
}

// begin makes room for another turn.
func (s *shown) begin(turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.told = turnBytesMax, false
	if s.said.line != nil {
		s.all = allBytesMax // nothing ends because of all that was said
		s.said.begin(turn)
	}
}

// fired tells of a tool that is off and was used all the same; it is nil where none is.
func (s *shown) fired() <-chan string { return s.said.fired }

// held is what the agent has said in this turn, and nobody was told yet.
func (s *shown) held() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimRight(strings.ToValidUTF8(string(s.said.wait), "\uFFFD"), blanks)
}

// instead has a text told in the place of what is held.
func (s *shown) instead(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.instead(text)
}

// aside has a line told beneath what the agent says in this turn.
func (s *shown) aside(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.aside(text)
}

// end tells the host that a turn is over.
func (s *shown) end(e agent.TurnEnd) {
	e.Type = agent.TurnEndType
	e.Reason = inert.Cut(e.Reason, reasonBytesMax)
	e.Says = inert.Cut(inert.Block(strings.TrimSpace(e.Says), agent.SaysBytesMax), agent.SaysBytesMax)
	line, err := json.Marshal(e)
	for err == nil && len(line) > endLineMax && e.Says != "" { // what is escaped grows
		e.Says = inert.Cut(e.Says, len(e.Says)/2)
		line, err = json.Marshal(e)
	}
	if err != nil {
		panic(err) // texts and numbers always can be
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.said.end()
	fmt.Fprintf(s.out, "%s\n", line)
}

// answer writes an answer to the host.
func (s *shown) answer(a map[string]any) {
	line, err := json.Marshal(a)
	if err != nil {
		panic(err) // texts and a bool always can be
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%s\n", line)
}

// oneLine is an error as one line for a person.
func oneLine(err error) string { return inert.Cut(inert.Line(err.Error()), reasonBytesMax) }
