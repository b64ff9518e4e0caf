package cli

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/inert"
)

// editor is the message that is being typed, key by key.
type editor struct {
	text   []rune
	at     int    // the cursor stands before this rune
	part   []byte // of a rune, or of an escape sequence
	pastes bool   // what comes is pasted: an Enter in it sends nothing
}

// typedBytesMax bounds what is typed; a message has less.
const typedBytesMax = 64 << 10

// Keys as a terminal sends them.
const (
	keyHome, keyEnd, keyClear, keyWord = 1, 5, 21, 23
	keyBack, keyDelete, keyEscape      = 8, 127, 27
)

// key takes one byte. It returns the whole message when Enter was pressed, and quit when Ctrl-D was, with nothing typed.
func (e *editor) key(b byte) (message string, whole, quit bool) {
	switch {
	case len(e.part) > 0 && e.part[0] == keyEscape:
		e.escape(b)
	case b == keyEscape:
		e.part = []byte{b}
	case b >= utf8.RuneSelf:
		if e.part = append(e.part, b); utf8.FullRune(e.part) {
			r, _ := utf8.DecodeRune(e.part)
			e.part = nil
			e.insert(r)
		}
	case b == '\n' || b == '\r':
		return e.enter()
	case b == '\t' || b >= ' ' && b != keyDelete:
		e.insert(rune(b))
	case b == endOfInputKey && len(e.text) == 0:
		return "", false, true
	default:
		e.move(b)
	}
	return "", false, false
}

// enter ends the message, unless its line goes on.
func (e *editor) enter() (message string, whole, quit bool) {
	n := len(e.text)
	switch {
	case e.pastes:
		e.insert('\n')
		return "", false, false
	case n > 0 && e.text[n-1] == '\\':
		e.text[n-1], e.at = '\n', n
		return "", false, false
	}
	message = strings.TrimSpace(string(e.text))
	e.text, e.at = nil, 0
	return message, true, false
}

func (e *editor) insert(r rune) {
	if len(e.text)*utf8.UTFMax < typedBytesMax {
		e.text = slices.Insert(e.text, e.at, r)
		e.at++
	}
}

// move obeys a key that is no text.
func (e *editor) move(b byte) {
	from := e.at
	switch b {
	case keyBack, keyDelete:
		from = max(e.at-1, 0)
	case keyClear:
		from = 0
	case keyWord:
		for from > 0 && unicode.IsSpace(e.text[from-1]) {
			from--
		}
		for from > 0 && !unicode.IsSpace(e.text[from-1]) {
			from--
		}
	case keyHome:
		e.at = 0
		return
	case keyEnd:
		e.at = len(e.text)
		return
	}
	e.text, e.at = slices.Delete(e.text, from, e.at), from
}

// escape takes the next byte of a sequence, and obeys it once it is whole.
func (e *editor) escape(b byte) {
	e.part = append(e.part, b)
	if n := len(e.part); n == 2 && (b == '[' || b == 'O') || n > 2 && n < 16 && (b < '@' || b > '~') {
		return
	}
	switch string(e.part[1:]) {
	case "[200~":
		e.pastes = true
	case "[201~":
		e.pastes = false
	case "[D", "OD":
		e.at = max(e.at-1, 0)
	case "[C", "OC":
		e.at = min(e.at+1, len(e.text))
	case "[H", "OH", "[1~":
		e.at = 0
	case "[F", "OF", "[4~":
		e.at = len(e.text)
	case "[3~":
		if e.at < len(e.text) {
			e.text = slices.Delete(e.text, e.at, e.at+1)
		}
	}
	e.part = nil
}

// What stands before rows that are typed, and before those that were.
const (
	typedMark = "> "
	typedRest = ". "
)

// rows are the message as it is typed, none longer than the terminal is wide, and where the cursor stands.
func (e *editor) rows(width int) (rows []string, row, col int) {
	line, used := typedMark, columns(typedMark)
	next := func() { rows, line, used = append(rows, line), typedRest, columns(typedRest) }
	for i, r := range append(slices.Clone(e.text), ' ') {
		shown := inert.Line(string(r))
		if r != '\n' && used+columns(shown) > width-1 {
			next()
		}
		if i == e.at {
			row, col = len(rows), used
		}
		switch {
		case i == len(e.text):
		case r == '\n':
			next()
		default:
			line, used = line+shown, used+columns(shown)
		}
	}
	return append(rows, line), row, col
}
