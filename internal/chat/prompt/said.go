package prompt

import (
	"strings"
	"unicode"
)

// Past is a line of what was said before, for an agent that cannot remember it: who said it, and the words. Their later lines are set
// in and their signs escaped, so that no words pass for those of somebody else, or for an element.
func Past(who, words string) string {
	return escapes.Replace(legible(who, "")) + ": " + strings.ReplaceAll(text(words, TextMax), "\n", "\n  ")
}

// Strip returns what an agent said without its <internal> parts, each from its opening to the nearest end, and without blanks
// around what is left (CH-127). "" is nothing to send. A part that is opened and never ended stays: it is no part.
func Strip(said string) string {
	const begins, ends = "<internal>", "</internal>"
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(said, begins)
		_, after, closed := strings.Cut(rest, ends)
		if !ok || !closed {
			b.WriteString(said)
			break
		}
		b.WriteString(before)
		said = after
	}
	return strings.TrimFunc(b.String(), func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}
