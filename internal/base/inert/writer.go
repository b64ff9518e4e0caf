package inert

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// The only escape sequences that leave this package, all ours.
const (
	off   = "\x1b[0m"
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
)

// Writer passes text on as a Block of any length: newlines and tabs stay, all else that
// is not shown is escaped. It holds back at most the three bytes of a rune cut in two.
type Writer struct {
	to     io.Writer
	colour bool
	keep   string // ASCII controls that stay, beside newlines and tabs
	held   []byte // the beginning of a rune
	marks  marks
	start  bool // at the start of a line
	open   bool // a colour is on
	out    bytes.Buffer
	err    error // the underlying writer's first; nothing is written after it
}

// NewWriter returns a Writer to w. With colour it colours lines as those of a unified
// diff, by their first character; nothing else of the text can.
func NewWriter(w io.Writer, colour bool) *Writer {
	return &Writer{to: w, colour: colour, start: true}
}

// NewScreen returns a Writer to the terminal of somebody who types into what writes: what a line editor does without
// escape sequences stays, which is to go back to the line's start or by one place, and to ring.
func NewScreen(w io.Writer) *Writer {
	s := NewWriter(w, false)
	s.keep = "\r\b\a"
	return s
}

// Write passes p on. It always takes all of p; an error is the underlying writer's.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(w.held) > 0 && len(p) > 0 { // complete the rune first, a byte at a time
		w.held, p = append(w.held, p[0]), p[1:]
		if utf8.FullRune(w.held) {
			held := w.held
			w.held = nil
			if rest := w.take(held); len(rest) > 0 {
				w.held = append([]byte(nil), rest...)
			}
		}
	}
	w.held = append(w.held, w.take(p)...)
	return n, w.flush()
}

// Close escapes what is left of a cut rune and ends a colour. It does not close the underlying writer.
func (w *Writer) Close() error {
	for _, c := range w.held {
		w.begin(c)
		w.out.WriteString(named(utf8.RuneError, 1, c))
	}
	w.held = nil
	w.end()
	return w.flush()
}

// take renders all whole runes of p and returns the rest.
func (w *Writer) take(p []byte) []byte {
	for len(p) > 0 {
		if !utf8.FullRune(p) {
			return p
		}
		r, size := utf8.DecodeRune(p)
		switch {
		case r == '\n':
			w.end()
			w.out.WriteByte('\n')
			w.start, w.marks = true, 0
		case w.marks.shown(r, size) || r == '\t' || size == 1 && strings.IndexByte(w.keep, p[0]) >= 0:
			w.begin(p[0])
			w.out.Write(p[:size])
		default:
			w.begin(p[0])
			w.out.WriteString(named(r, size, p[0]))
		}
		p = p[size:]
		if w.out.Len() >= 32<<10 && w.flush() != nil {
			return nil // the rest is dropped; flush keeps the error
		}
	}
	return nil
}

// begin turns the colour of a line on at its first character.
func (w *Writer) begin(first byte) {
	if !w.start {
		return
	}
	w.start = false
	if !w.colour {
		return
	}
	switch first {
	case '+':
		w.out.WriteString(green)
	case '-':
		w.out.WriteString(red)
	case '@':
		w.out.WriteString(cyan)
	case 'd': // diff --git: in a unified diff every line of content begins with a space, + or -
		w.out.WriteString(bold)
	default:
		return
	}
	w.open = true
}

func (w *Writer) end() {
	if w.open {
		w.out.WriteString(off)
		w.open = false
	}
}

// flush hands over what was rendered.
func (w *Writer) flush() error {
	if w.out.Len() > 0 && w.err == nil {
		_, w.err = w.to.Write(w.out.Bytes())
	}
	w.out.Reset()
	return w.err
}
