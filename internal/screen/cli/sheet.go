package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// sheet writes what a person reads: lines with an indent, colours for our own words.
type sheet struct {
	palette
	w        io.Writer
	width    int
	terminal bool // who reads sees rows of width columns
	folds    bool // many files of a folder are one line
	now      time.Time
}

// line writes one line. On a terminal too short for it, a mark stands before what goes on in the next row: words of others in it
// could else be made to begin there as a line of ours.
func (s sheet) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.terminal {
		text = marked(text, s.width)
	}
	fmt.Fprintln(s.w, text)
}

func (s sheet) list(title string, lines []string, mark string) {
	if len(lines) == 0 {
		return
	}
	s.line("")
	s.line("%s:", title)
	for _, l := range lines {
		s.rows("  "+mark+" ", "    ", inert.Line(l))
	}
}

// mark is a verdict in its colour.
func (s sheet) mark(status string) string {
	switch status {
	case "valid":
		return s.green(status)
	case "invalid":
		return s.red(status)
	}
	return s.yellow(inert.Line(status))
}

// state is a state's name in its colour.
func (s sheet) state(v string) string {
	switch v {
	case api.Finalized:
		return s.green(v)
	case api.Failed, api.RollbackFailed, api.Rejected:
		return s.red(v)
	case api.AwaitingApproval, api.RolledBack, api.Cancelled, api.Paused, api.Blocked:
		return s.yellow(v)
	}
	return s.cyan(v)
}

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
		line = strings.ReplaceAll(line, "\t", tab)
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

// clearLine has a terminal forget the line on which it writes.
const clearLine = "\r\x1b[K"

// meanwhile does something that takes seconds, and says so at a terminal until it is done.
func (s sheet) meanwhile(what string, do func()) {
	if s.terminal {
		fmt.Fprint(s.w, s.dim("… "+what))
		defer fmt.Fprint(s.w, clearLine)
	}
	do()
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
