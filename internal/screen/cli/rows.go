package cli

import (
	"strings"

	"sallyport/internal/base/inert"
)

// agentMark stands before every row that an agent wrote, and before none of ours.
const agentMark = "| "

// quote writes what an agent printed: whatever it looks like, no row of it begins as one of ours does.
func (s sheet) quote(text string) {
	s.hung(agentMark, agentMark, inert.Block(text, len(text)))
}

// hung is rows with a first and a further prefix of one width. Where no terminal breaks lines they stay in one piece.
func (s sheet) hung(first, rest, text string) {
	if s.terminal {
		s.rows(first, rest, text)
		return
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		s.line("%s%s", first, line)
		first = rest
	}
}

// rows writes text that others chose, so that nothing of it begins where only our own words do: the first
// row comes after first, every other after rest, and none is longer than the terminal is wide. Both
// prefixes are as wide as rest; colours take no room. Text is harmless already, as inert leaves it.
// A word that fits into a row is not broken. Of no text there is no row.
func (s sheet) rows(first, rest, text string) {
	if strings.Trim(text, " \n") != "" {
		s.broken(first, rest, text, fold)
	}
}

// broken is rows with the rule by which a line is broken.
func (s sheet) broken(first, rest, text string, cut func(line string, room int) (row, rest string)) {
	room := max(s.width-columns(rest)-1, 8) // one to spare: some terminals wrap when the last is written
	prefix := first
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		line = strings.ReplaceAll(line, "\t", "    ")
		for more := true; more; prefix = rest {
			var row string
			if row, line = cut(line, room); line == "" {
				more = false
			}
			s.line("%s%s", prefix, strings.TrimRight(row, " "))
		}
	}
}

// name is rows for a path: in one piece where no terminal breaks it, to be searched for and copied.
func (s sheet) name(first, rest, path string) {
	if !s.terminal {
		s.line("%s%s", first, path)
		return
	}
	s.broken(first, rest, path, cut)
}

// goesOn stands before a row in which a line of ours goes on.
const goesOn = "      … "

// marked breaks lines where a terminal would. Colours are our own, take no room and go on.
func marked(text string, width int) string {
	var b strings.Builder
	used, escape := 0, false
	for _, r := range text {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		case r == '\n':
			used = 0
		case used+inert.Width(string(r)) > width:
			b.WriteString("\n" + goesOn)
			used = columns(goesOn) + inert.Width(string(r))
		default:
			used += inert.Width(string(r))
		}
		b.WriteRune(r)
	}
	return b.String()
}

// onTerminal reports whether w is one.
func onTerminal(w any) bool {
	_, ok := terminal(w)
	return ok
}

// cut takes as much of a line as fits into so many columns.
func cut(line string, room int) (row, rest string) {
	used := 0
	for i, r := range line {
		if used += inert.Width(string(r)); used > room {
			return line[:i], line[i:]
		}
	}
	return line, ""
}

// fold is cut, but at the last blank if the word after it fits into a row of its own.
func fold(line string, room int) (row, rest string) {
	row, rest = cut(line, room)
	if rest == "" || rest[0] == ' ' {
		return row, strings.TrimPrefix(rest, " ")
	}
	at := strings.LastIndexByte(row, ' ')
	if at <= 0 {
		return row, rest
	}
	if word, _, _ := strings.Cut(line[at+1:], " "); columns(word) > room {
		return row, rest
	}
	return line[:at], line[at+1:]
}

// columns is how many columns a text takes on a terminal, or more: never fewer.
func columns(text string) int { return inert.Width(text) }
