package channel

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns a text in pieces that are no longer than the platform takes, cut between lines or words where that can be. Nothing of the text
// is lost but the white space at a cut.
func (c Can) Cut(text string) (pieces []string) {
	length := c.Length
	if length == nil {
		length = func(text string) int { return len(text) }
	}
	for text != "" {
		end := fits(text, max(c.TextMax, 1), length)
		if end == len(text) {
			return append(pieces, text)
		}
		at, next := breakAt(text, end)
		if piece := strings.TrimRightFunc(text[:at], unicode.IsSpace); piece != "" {
			pieces = append(pieces, piece)
		}
		text = text[next:]
	}
	return pieces
}

// fits returns how many bytes of a text are no longer than max, whole letters, and at least one.
func fits(text string, max int, length func(string) int) int {
	if length(text) <= max {
		return len(text)
	}
	low, high := 0, len(text) // text[:low] fits, text[:high] does not
	for {
		mid := low + (high-low)/2
		for mid > low && !utf8.RuneStart(text[mid]) {
			mid--
		}
		if mid == low {
			mid = low + 1
			for mid < high && !utf8.RuneStart(text[mid]) {
				mid++
			}
			if mid == high {
				break
			}
		}
		if length(text[:mid]) <= max {
			low = mid
		} else {
			high = mid
		}
	}
	if low == 0 {
		_, low = utf8.DecodeRuneInString(text)
	}
	return low
}

// breakAt returns where a piece of at most end bytes ends, and where the next begins: after a line, else after a word, if that leaves no
// piece too short, else anywhere.
func breakAt(text string, end int) (at, next int) {
	head := text[:end]
	if text[end] == '\n' || text[end] == ' ' {
		return end, end + 1
	}
	for _, sep := range []string{"\n", " "} {
		if i := strings.LastIndex(head, sep); i >= end/4 && i > 0 {
			return i, i + len(sep)
		}
	}
	return end, end
}
