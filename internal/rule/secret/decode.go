package secret

import (
	"encoding/hex"
	"sort"
	"unicode/utf8"
)

// Secrets are also looked for in what a text encodes: base64 in both alphabets, also wrapped at any width, and hex; in
// text of two or four bytes a letter; each also within the other, depthMax deep.
const (
	depthMax     = 3
	encodedMin   = 20 // characters: fifteen bytes
	hexMin       = 40
	contextLeft  = 64 // bytes of the line before: `token = <base64>` is a finding for what stands left of it
	contextRight = 16
	decodedMax   = 8 // times the text, all decodings together
)

// base64Digit is a character's value in either alphabet; -1: it is none.
var base64Digit = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range len(digits) {
		t[digits[i]] = int8(i)
	}
	t['-'], t['_'] = 62, 63
	return t
}()

// origin says which part of a text a part of a decoded text comes from.
type origin struct {
	at       int // where in the decoded text the part begins
	from, to int // in the text
}

// decoded is a text made of all that another encodes, in order, parted by bytes that no secret holds.
type decoded struct {
	text    []byte
	origins []origin
	plain   []stretch // parts of text that were decoded, without their context
}

const parting = "\x00\n\x00"

func (d *decoded) begin(from, to int) {
	d.text = append(d.text, parting...)
	d.origins = append(d.origins, origin{at: len(d.text), from: from, to: to})
}

// of returns the origin of what stands at a place in the decoded text.
func (d *decoded) of(at int) origin {
	i := sort.Search(len(d.origins), func(i int) bool { return d.origins[i].at > at })
	return d.origins[max(i-1, 0)]
}

// decode decodes what the given parts of a text encode. ok is false if that is more than limit bytes.
func decode(text string, parts []stretch, limit int) (d decoded, ok bool) {
	var space []stretch
	for _, part := range parts {
		for at := part.from; at < part.to; {
			if base64Digit[text[at]] < 0 {
				at++
				continue
			}
			e := nextEncoded(text, at, part.to, space)
			space = e.lines
			if e.digits >= encodedMin {
				d.add(text, e)
			}
			if len(d.text) > limit {
				return d, false
			}
			at = e.to
		}
	}
	return d, true
}

// encoded is a row of base64 digits, perhaps on more than one line.
type encoded struct {
	from, to int
	digits   int
	starts   [4]bool // the data may begin after any of these many digits, modulo 4
	hex      bool
	lines    []stretch
}

// nextEncoded returns the row that begins at a digit. Its lines use the space given.
func nextEncoded(text string, from, end int, space []stretch) encoded {
	const wrapMin = 32
	e := encoded{from: from, to: from, hex: true, lines: space[:0]}
	at := from
	for {
		line := at
		e.starts[e.digits%4] = true
		for at < end && base64Digit[text[at]] >= 0 {
			c := text[at]
			at++
			if c == '/' || c == '+' || c == '-' || c == '_' {
				// What stands left may be a path, a name or a flag. All of it is still tried as one.
				e.starts[(e.digits+at-line)%4] = true
			}
			e.hex = e.hex && (c <= '9' && c >= '0' || c|0x20 >= 'a' && c|0x20 <= 'f')
		}
		e.digits += at - line
		e.lines = append(e.lines, stretch{line, at})
		e.to = at
		if at-line < wrapMin {
			return e
		}
		next := afterWrap(text, at, end)
		if next == at || next == end || base64Digit[text[next]] < 0 {
			return e
		}
		at = next
	}
}

// afterWrap returns where the next line of wrapped base64 begins, or at if the line is not wrapped here: a line end, as it is or as
// program text writes it, and what indents, comments or quotes the next line.
func afterWrap(text string, at, end int) int {
	i := at
	for i < end && (text[i] == '"' || text[i] == '\'' || text[i] == '\\' || text[i] == ' ' || text[i] == '+' || text[i] == ',') && i < at+8 {
		if text[i] == '\\' && i+1 < end && (text[i+1] == 'n' || text[i+1] == 'r') {
			for i+1 < end && text[i] == '\\' && (text[i+1] == 'n' || text[i+1] == 'r') {
				i += 2
			}
			return i
		}
		i++
	}
	broke := false
	for i < end && (text[i] == '\n' || text[i] == '\r') && i < at+10 {
		broke = broke || text[i] == '\n'
		i++
	}
	if !broke {
		return at
	}
	for start := i; i < end && i < start+64; i++ {
		switch text[i] {
		case ' ', '\t', '"', '\'', '#', '*', '>':
		default:
			return i
		}
	}
	return i
}

func (d *decoded) add(text string, e encoded) {
	digits := make([]byte, 0, e.digits)
	for _, line := range e.lines {
		digits = append(digits, text[line.from:line.to]...)
	}
	if e.hex && len(digits) >= hexMin && len(digits)%2 == 0 {
		plain := make([]byte, len(digits)/2)
		if _, err := hex.Decode(plain, digits); err == nil && legible(plain) {
			d.addInContext(text, e, plain)
		}
	}
	for start, yes := range e.starts {
		if !yes || len(digits)-start < encodedMin {
			continue
		}
		plain := fromBase64(digits[start:])
		if start == 0 && legible(plain) {
			d.addInContext(text, e, plain)
			continue
		}
		d.begin(e.from, padded(text, e.to))
		d.addPlain(plain)
	}
}

func (d *decoded) addPlain(plain []byte) {
	from := len(d.text)
	d.text = append(d.text, plain...)
	d.plain = append(d.plain, stretch{from, len(d.text)})
}

// padded returns where base64 ends whose digits end at a place.
func padded(text string, to int) int {
	for end := to + 2; to < len(text) && to < end && text[to] == '='; {
		to++
	}
	return to
}

// addInContext adds what was decoded between what stands around it on its line.
func (d *decoded) addInContext(text string, e encoded, plain []byte) {
	left := e.from
	for left > 0 && left > e.from-contextLeft && text[left-1] != '\n' {
		left--
	}
	right := e.to
	for right < len(text) && right < e.to+contextRight && text[right] != '\n' {
		right++
	}
	d.begin(e.from, padded(text, e.to))
	d.text = append(d.text, text[left:e.from]...)
	d.addPlain(plain)
	d.text = append(d.text, text[e.to:right]...)
}

// fromBase64 decodes digits of either alphabet; a last lone digit is dropped.
func fromBase64(digits []byte) []byte {
	out := make([]byte, 0, len(digits)*3/4+3)
	i := 0
	for ; i+4 <= len(digits); i += 4 {
		v := uint32(base64Digit[digits[i]])<<18 | uint32(base64Digit[digits[i+1]])<<12 |
			uint32(base64Digit[digits[i+2]])<<6 | uint32(base64Digit[digits[i+3]])
		out = append(out, byte(v>>16), byte(v>>8), byte(v))
	}
	switch len(digits) - i {
	case 2:
		v := uint32(base64Digit[digits[i]])<<18 | uint32(base64Digit[digits[i+1]])<<12
		out = append(out, byte(v>>16))
	case 3:
		v := uint32(base64Digit[digits[i]])<<18 | uint32(base64Digit[digits[i+1]])<<12 | uint32(base64Digit[digits[i+2]])<<6
		out = append(out, byte(v>>16), byte(v>>8))
	}
	return out
}

// legible says whether bytes are text.
func legible(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(b)
}

// widened returns the text that stands in a text with zero bytes between its letters, as in UTF-16 and UTF-32 of either
// order, in documents as well as in programs.
func widened(text string) (d decoded) {
	const lettersMin = 8
	readable := func(c byte) bool { return c >= 0x20 && c < 0x7f || c == '\n' || c == '\r' || c == '\t' }
	for at := 0; at < len(text); {
		if !readable(text[at]) || at+1 >= len(text) || text[at+1] != 0 {
			at++
			continue
		}
		gap := 1
		for gap < 3 && at+1+gap < len(text) && text[at+1+gap] == 0 {
			gap++
		}
		if gap == 2 { // neither two nor four bytes a letter
			gap = 1
		}
		to, letters := at, 0
		for to < len(text) && readable(text[to]) && zeros(text, to+1, gap) {
			to += 1 + gap
			letters++
		}
		if to > len(text) {
			to = len(text)
		}
		if letters >= lettersMin {
			// Origins by the line: one per row would be one per file.
			d.begin(at, to)
			for i := at; i < to; i += 1 + gap {
				d.text = append(d.text, text[i])
				if text[i] == '\n' {
					d.origins = append(d.origins, origin{at: len(d.text), from: i + 1, to: to})
				}
			}
		}
		at = max(to, at+1)
	}
	return d
}

// zeros says whether n zero bytes stand at a place; the text may end there.
func zeros(text string, at, n int) bool {
	for i := at; i < at+n && i < len(text); i++ {
		if text[i] != 0 {
			return false
		}
	}
	return true
}
