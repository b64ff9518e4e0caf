package inert

import (
	"strings"
	"unicode/utf8"
)

// Head returns the beginning of a text: at most limit bytes, up to the end of a character.
func Head[T string | []byte](s T, limit int) T {
	limit = max(limit, 0)
	if len(s) <= limit {
		return s
	}
	at := limit
	for at > 0 && at > limit-utf8.UTFMax && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at]
}

// Cut returns a text as it is, or its beginning and an ellipsis in at most limit bytes, up to the end of a word of ASCII: half of a secret is
// left out, which nobody who looks for secrets would know for one.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const more = "…"
	head := Head(s, limit-len(more))
	inWord := func(r rune) bool { return r > ' ' && r < utf8.RuneSelf }
	if inWord(rune(s[len(head)])) {
		head = strings.TrimRightFunc(head, inWord)
	}
	return head + more
}

// Whole returns a text that comes in parts without the character at its end of which more is to come.
func Whole(s []byte) []byte {
	for at := len(s) - 1; at >= 0 && at > len(s)-utf8.UTFMax; at-- {
		if !utf8.RuneStart(s[at]) {
			continue
		}
		if utf8.FullRune(s[at:]) {
			return s
		}
		return s[:at]
	}
	return s
}
