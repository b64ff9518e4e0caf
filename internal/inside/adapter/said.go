package adapter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
)

const (
	sayWithin    = 200 * time.Millisecond // until words that came are told, if no line ends before
	pieceMax     = 8 << 10                // of a piece; a longer one is told at once
	pieceLineMax = 15 << 10               // of its line: the host hears no longer ones than 16 KiB
	openMaxTools = 256                    // tools that are under way and known by name
	callsMax     = 10_000                 // tool calls of a turn that are told
	blanks       = " \t\r\n"
	cutWords     = "\n\n(What follows was cut: one turn says at most 64 KiB.)"
)

// said tells the host of a conversation what the agent says and which tools it uses. shown's lock guards it, and its lines go where
// shown's go. The zero value tells nothing: the program serves no conversation.
type said struct {
	line   func(v any)             // writes an event
	flush  func(after func()) stop // has words told after a while
	off    []string                // tools that nobody is given
	fired  chan string             // one of them that was used all the same
	turn   int                     // that is under way; 0 = none
	number int                     // of the last piece
	left   int                     // bytes that this turn may still say
	wait   []byte                  // words that are not told yet; what is blank at their end waits for what follows
	hold   bool                    // nothing is told before a hook has looked at it, at the end of the turn
	passed bool                    // it has
	apart  bool                    // a tool came since the last words
	timer  stop
	asides []string // what is told beneath the agent's words
	calls  int      // of this turn
	last   int      // id of the last call
	open   map[string]agent.ToolCall
}

// stop ends a timer.
type stop func() bool

// begin begins a turn.
func (s *said) begin(turn int) {
	select {
	case <-s.fired: // it belongs to a turn that is over
	default:
	}
	*s = said{line: s.line, flush: s.flush, off: s.off, fired: s.fired, hold: s.hold, last: s.last, turn: turn, left: agent.TextBytesMax,
		open: map[string]agent.ToolCall{}}
}

// say takes words in pieces of any size.
func (s *said) say(text string) {
	if s.turn == 0 || text == "" {
		return
	}
	if s.apart && strings.Trim(text, blanks) != "" {
		if s.wait = bytes.TrimRight(s.wait, blanks); s.number > 0 || len(s.wait) > 0 {
			s.wait = append(s.wait, "\n\n"...)
		}
		text = strings.TrimLeft(text, "\r\n")
		s.apart = false
	}
	s.wait = append(s.wait, text...)
	switch {
	case s.hold:
		s.wait = s.wait[:min(len(s.wait), 2*agent.TextBytesMax)] // more than may be said, so that it is seen that it was cut
	case len(s.wait) >= pieceMax:
		s.tell(len(s.wait))
	case strings.Contains(text, "\n"):
		s.tell(bytes.LastIndexByte(s.wait, '\n'))
	}
	if len(s.wait) > 0 && s.timer == nil && !s.hold {
		s.timer = s.flush(func() {
			s.timer = nil
			s.tell(len(s.wait))
		})
	}
}

// tell tells what waits up to end, but for what is blank there and for half a character.
func (s *said) tell(end int) {
	part := bytes.TrimRight(s.wait[:end], blanks)
	text := string(inert.Whole(part))
	s.wait = append(s.wait[:0], s.wait[len(text):]...)
	s.pieces(text)
}

// pieces tells a text, as much of it as may be said.
func (s *said) pieces(text string) {
	if s.left < 0 {
		return // it was said that no more is
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if part := inert.Head(text, s.left); len(part) < len(text) {
		s.left = -1
		s.split(part)
		s.split(cutWords)
		return
	}
	s.left -= len(text)
	s.split(text)
}

// split tells a text in pieces that each fit a line.
func (s *said) split(text string) {
	for len(text) > 0 {
		part := inert.Head(text, pieceMax)
		for len(encoded(agent.Text{Text: part})) > pieceLineMax {
			part = inert.Head(part, len(part)/2)
		}
		s.number++
		s.line(agent.Text{Type: agent.TextType, Turn: s.turn, Number: s.number, Text: part})
		text = text[len(part):]
	}
}

// began tells that a tool begins.
func (s *said) began(t agent.Tool) {
	if s.turn == 0 {
		return
	}
	if t.Name != "" && slices.Contains(s.off, t.Name) {
		select {
		case s.fired <- t.Name:
		default:
		}
	}
	s.apart = true
	if !s.hold {
		s.tell(len(s.wait))
	}
	if _, again := s.open[t.ID]; again || s.calls >= callsMax || len(s.open) >= openMaxTools {
		return
	}
	s.calls++
	s.last++
	c := agent.ToolCall{
		Type: agent.ToolCallType, Turn: s.turn, ID: fmt.Sprintf("call-%d", s.last),
		Kind: inert.Cut(inert.Line(t.Kind), 20), Title: inert.Cut(inert.Line(t.Title), agent.TitleBytesMax), TimeoutMS: max(0, t.Timeout.Milliseconds()),
	}
	s.open[t.ID] = c
	s.line(c)
}

// ended tells that a tool is over.
func (s *said) ended(id string, failed bool) {
	c, ok := s.open[id]
	if !ok {
		return
	}
	delete(s.open, id)
	c.Over, c.Failed = true, failed
	s.line(c)
}

// aside keeps a line for beneath the agent's words.
func (s *said) aside(text string) { s.asides = append(s.asides, text) }

// instead puts a text in the place of all that was held.
func (s *said) instead(text string) { s.wait, s.passed = []byte(text), true }

// end tells all that is left of a turn: words, what stands beneath them, and that its tools are over.
func (s *said) end() {
	if s.turn == 0 {
		return
	}
	if s.timer != nil {
		s.timer()
	}
	if !s.hold || s.passed {
		s.pieces(strings.TrimRight(string(s.wait), blanks))
	}
	for _, text := range s.asides {
		if s.number > 0 {
			text = "\n\n" + text
		}
		s.split(text)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.open), func(a, b string) int { return strings.Compare(s.open[a].ID, s.open[b].ID) }) {
		s.ended(id, true)
	}
	s.turn, s.wait, s.asides, s.timer = 0, nil, nil, nil
}

// encoded is plain data as one line of JSON, without its newline.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts and numbers always can be
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
