package channel

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sallyport/internal/base/inert"
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

// rowMax is how many bytes a line of a card has at the most. Every platform takes as many in one line.
const rowMax = 240

// Rows returns the text of a card in lines that no platform has to cut. A platform would begin the next line with whatever stands there, and
// that may be words of an agent's or the name of a file. What goes on here is marked.
func Rows(text string) string {
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		for len(strings.TrimSuffix(line, "\n")) > rowMax {
			row := inert.Head(line, rowMax)
			b.WriteString(row + "\n")
			line = inert.Onward + line[len(row):]
		}
		b.WriteString(line)
	}
	return b.String()
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
	if text[end] == '\n' {
		return end, end + 1
	}
	if i := strings.LastIndexByte(text[:end], '\n'); i > 0 {
		return i, i + 1
	}
	if text[end] == ' ' {
		return end, end + 1
	}
	if i := strings.LastIndexByte(text[:end], ' '); i >= end/4 && i > 0 {
		return i, i + 1
	}
	return end, end
}

// Units is how long a text is in UTF-16, as some platforms count.
func Units(text string) (n int) {
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
