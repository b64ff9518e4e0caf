package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/inert"
)

// escapes are enough that a text stays within its element, and within its quotes (CH-126).
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// text returns s as the content of an element, at most limit bytes of it.
func text(s string, limit int) string {
	s, _ = cut(s, limit)
	return escapes.Replace(legible(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t"))
}

// quoted returns s as the value of an attribute: one line, with an ellipsis where it is cut.
func quoted(s string, limit int) string {
	s, left := cut(s, limit)
	if left > 0 {
		s += "…"
	}
	return `"` + escapes.Replace(legible(s, "")) + `"`
}

// cut returns at most limit bytes of s, whole characters, and how many bytes are left out.
func cut(s string, limit int) (part string, left int) {
	part = inert.Head(s, limit)
	return part, len(s) - len(part)
}

// legible returns s as inert does, with its escapes for what would not be seen, but keeps what people's own writing needs: blanks of
// every width, and the joiners and selectors of emoji and of scripts that join, each behind a character that it can change. Any
// number of marks stays on a letter: an agent draws none.
func legible(s, keep string) string {
	var b strings.Builder
	b.Grow(len(s))
	var last rune
	for i, r := range s {
		_, size := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+size]
		if r >= ' ' && r <= '~' || size == 1 && strings.Contains(keep, piece) || unicode.Is(unicode.Zs, r) || joins(last, r) {
			b.WriteString(piece)
		} else {
			b.WriteString(inert.Line(piece))
		}
		last = r
	}
	return b.String()
}

const (
	nonJoiner, joiner = '\u200c', '\u200d'
	asText, asEmoji   = '\ufe0e', '\ufe0f'
	keycaps           = "0123456789#*"
)

// joins reports whether r, which shows nothing, changes how last is shown.
func joins(last, r rune) bool {
	switch r {
	case nonJoiner, joiner:
		return last >= utf8.RuneSelf && (unicode.IsLetter(last) || unicode.IsMark(last) && !inert.Inkless(last) || unicode.IsSymbol(last)) || last == asEmoji
	case asText, asEmoji:
		return unicode.IsSymbol(last) && last >= utf8.RuneSelf || unicode.Is(unicode.Po, last) && last >= utf8.RuneSelf || strings.ContainsRune(keycaps, last)
	}
	return false
}
