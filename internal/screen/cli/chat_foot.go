package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// foot is the last rows of a terminal, which are written again in place; what is printed stays above them. No row is longer than the
// terminal is wide, so that each takes one.
type foot struct {
	w        io.Writer
	rows     []string
	row, col int // of the cursor
}

// draw has the foot be these rows, with the cursor where it is wanted. What stands already is not written again.
func (f *foot) draw(rows []string, row, col int) {
	if slices.Equal(rows, f.rows) && row == f.row && col == f.col {
		return
	}
	same := 0
	for same < min(len(rows), len(f.rows))-1 && rows[same] == f.rows[same] {
		same++
	}
	var b strings.Builder
	if len(f.rows) > 0 {
		b.WriteString(vertical(same-f.row) + "\r\x1b[J")
	}
	b.WriteString(strings.Join(rows[same:], "\r\n"))
	b.WriteString(vertical(row-(len(rows)-1)) + "\r")
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	f.rows, f.row, f.col = rows, row, col
	io.WriteString(f.w, b.String()) // a terminal that is gone is noticed by who reads it
}

// write puts lines above the foot, which has to be drawn again.
func (f *foot) write(lines string) {
	f.clear()
	io.WriteString(f.w, strings.ReplaceAll(lines, "\n", "\r\n")) // as above
}

// clear takes the foot from the screen.
func (f *foot) clear() {
	if len(f.rows) > 0 {
		io.WriteString(f.w, vertical(-f.row)+"\r\x1b[J") // as above
	}
	f.rows, f.row, f.col = nil, 0, 0
}

// vertical moves the cursor so many rows down, or up if that is less than none.
func vertical(rows int) string {
	switch {
	case rows < 0:
		return fmt.Sprintf("\x1b[%dA", -rows)
	case rows > 0:
		return fmt.Sprintf("\x1b[%dB", rows)
	}
	return ""
}
