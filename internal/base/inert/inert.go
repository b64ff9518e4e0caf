// Package inert makes text from agents, repositories and chats harmless to show.
//
// A terminal obeys escape sequences, a reader believes what bidirectional
// controls and invisible letters make of a line, and a shell obeys what is
// pasted into it. What this package returns is valid UTF-8 without control
// characters (but for the newlines and tabs of a block), without bidirectional
// controls, without invisible characters, without piles of marks on one letter;
// each of them is shown as an escape: \xNN for a byte that is not UTF-8 and for
// control characters, \uNNNN beyond.
//
// A backslash in a Line or a Block stands for itself, so that code stays
// readable; only a Path is exact, both ways.
//
// Head, Cut and Whole cut a text between two characters, and make nothing harmless.
package inert

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Onward begins what belongs to the line before and had no place in it. No line of a card of the host's begins so, and no line of a diff.
const Onward = "… "

// Line returns s as one line: newlines and tabs are escaped too.
func Line(s string) string {
	return escape(s, "")
}

// Block returns at most limit bytes of s as lines: newlines and tabs stay, a line that says
// how much was left out follows when s was longer.
func Block(s string, limit int) string {
	head := Head(s, limit)
	text := escape(head, "\n\t")
	if left := len(s) - len(head); left > 0 {
		text += fmt.Sprintf("\n… %d bytes more", left)
	}
	return text
}

// Short returns s as one line of at most limit bytes and an ellipsis, with each run of white space as one space.
func Short(s string, limit int) string {
	s = joined(s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

// Quoted is Short between quotation marks, as what others have written stands in a sentence of the host: it ends where the marks end.
func Quoted(s string, limit int) string {
	return "“" + strings.NewReplacer("“", "'", "”", "'", "„", "'", `"`, "'").Replace(Short(s, limit)) + "”"
}

// Brief is Short, cut as by Cut: for what an agent shows, of which nobody has taken the secrets out yet.
func Brief(s string, limit int) string { return Cut(joined(s), limit) }

// joined is a text as one line, with each run of white space as one space.
func joined(s string) string {
	return Line(strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "))
}

// Command returns the words of a command as a shell takes them.
func Command(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	return strings.Join(quoted, " ")
}

// Word returns a word of a command as a shell takes it; unlike a path, it may begin with dashes.
func Word(w string) string {
	rest := strings.TrimLeft(w, "-")
	if rest == "" && w != "" {
		return w
	}
	return w[:len(w)-len(rest)] + Path(rest)
}

// Path returns a path as one shell word that names exactly it: as it is when nothing in it
// is special, else in single quotes, and in $'…' when something must be escaped.
func Path(p string) string {
	if p == "" {
		return "''"
	}
	bare := p[0] != '-' && p[0] != '~' && p[0] != '='
	exact := true
	var m marks
	for i := 0; i < len(p); {
		r, size := utf8.DecodeRuneInString(p[i:])
		if !m.shown(r, size) || r == '\'' || r == '\\' {
			exact = false
			break
		}
		if r < utf8.RuneSelf && !isBare(byte(r)) {
			bare = false
		}
		i += size
	}
	switch {
	case exact && bare:
		return p
	case exact:
		return "'" + p + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	m = 0
	for i := 0; i < len(p); {
		r, size := utf8.DecodeRuneInString(p[i:])
		switch seen := m.shown(r, size); {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case seen:
			b.WriteRune(r)
		default:
			b.WriteString(named(r, size, p[i]))
		}
		i += size
	}
	b.WriteByte('\'')
	return b.String()
}

// isBare reports whether no shell sees anything in c.
func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._/+@%=:,~-^", c) >= 0
}

// escape returns s with all that is not shown escaped, except the ASCII characters in keep.
func escape(s, keep string) string {
	if clean(s, keep) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	var m marks
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if m.shown(r, size) || size == 1 && strings.IndexByte(keep, s[i]) >= 0 {
			b.WriteString(s[i : i+size])
		} else {
			b.WriteString(named(r, size, s[i]))
		}
		i += size
	}
	return b.String()
}

func clean(s, keep string) bool {
	var m marks
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if !m.shown(r, size) && !(size == 1 && strings.IndexByte(keep, s[i]) >= 0) {
			return false
		}
		i += size
	}
	return true
}

// named returns the escape of a rune, or of the byte it was decoded from. The
// four forms are those of a shell's $'…' and of Go, so they can be typed back.
func named(r rune, size int, raw byte) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r == utf8.RuneError && size <= 1, r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, raw)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Bidi reports whether r changes the direction of the text around it.
func Bidi(r rune) bool {
	return r == 0x61c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// marks is how many marks without a width of their own stand on the last letter.
type marks int

// marksMax is how many are shown on one letter: the writing of people has no more. A pile of them covers the lines above and below.
const marksMax = 5

// shown reports whether the next rune of a text may stand for itself.
func (m *marks) shown(r rune, size int) bool {
	if r < 0x300 || !unicode.In(r, unicode.Mn, unicode.Me) {
		*m = 0
		return shown(r, size)
	}
	*m++
	return *m <= marksMax && shown(r, size)
}

// shown reports whether a decoded rune may stand for itself: not controls, not format
// characters (all bidirectional controls and zero widths are), not separators other than
// the space, not letters and marks without ink, not what no font knows.
func shown(r rune, size int) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= ' ' && r != 0x7f
	case r == utf8.RuneError && size <= 1:
		return false
	case Inkless(r):
		return false
	}
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r)
}

// Inkless reports whether r is a letter, a mark or a symbol for Unicode, and nothing for a reader: what a program may show as nothing
// (Default_Ignorable_Code_Point, without the format characters), and the letters that are blank: the empty pattern of Braille, two
// hieroglyphs, the filler of Khitan and a note without a head.
func Inkless(r rune) bool {
	switch r {
	case 0x2800, 0x13441, 0x13442, 0x16fe4, 0x1d159:
		return true
	}
	return r >= 0xad && unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
