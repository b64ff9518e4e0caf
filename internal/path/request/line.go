package request

import "strings"

// Headline is what a request is called in the host's own words: its first line, unless an agent wrote that (SM-908).
func (r Request) Headline() string {
	if r.OfAgent() {
		return "Change what the group " + r.Group + " runs"
	}
	return FirstLine(r.Text)
}

// FirstLine is the start of a text, for lists and commit subjects; at most 72 characters.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 72 {
		return string(runes[:71]) + "…"
	}
	return line
}
