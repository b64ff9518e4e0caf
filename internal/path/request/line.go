package request

import "strings"

// FirstLine is the start of a text, for lists and commit subjects; at most 72 characters.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 72 {
		return string(runes[:71]) + "…"
	}
	return line
}
