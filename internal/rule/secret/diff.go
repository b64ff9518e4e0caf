package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// DiffRedactor is a Redactor for a unified diff. What a hunk shows of the old file and what it shows of the new one is each looked at as a
// text of its own, behind the signs of its lines: what stands on several, as a key or wrapped base64, is seen, and nothing is put together
// that stands in no file. No line goes: each that a secret reaches has a label in its place. What comes out is for reading: it cannot be
// applied where something was taken out.
type DiffRedactor struct {
	scanner *Scanner
	to      io.Writer
	line    []byte // unfinished
	long    bool   // it has more than is kept of it
	hunk    *hunk  // nil: between hunks
	file    string // that the lines are of, as it is named now
	hidden  int
	at      string // the first file of which something is hidden
}

// hunk is one of a file's, as far as it has come.
type hunk struct {
	left  [2]int // lines that are to come, of the old file and of the new one
	sides [2]side
	lines []hunkLine // that are not told yet
}

const (
	older = 0
	newer = 1
)

// side is what a hunk shows of one file.
type side struct {
	clean *Redactor
	out   bytes.Buffer
}

// hunkLine is a line of a hunk: of one file, of both, or of none.
type hunkLine struct {
	sign string
	raw  string
	of   [2]bool
}

// DiffRedactor returns one that writes to w. The caller closes it; w stays open.
func (s *Scanner) DiffRedactor(w io.Writer) *DiffRedactor { return &DiffRedactor{scanner: s, to: w} }

// diffLineMax bounds a line, in bytes. One that is longer is not shown: nor is a file scanned that is so large.
const diffLineMax = 32 << 20

// Hidden is how many lines there were of which something was taken out, and which the new file has and the old one has not; the name of a
// file is such a line, too. A yes to them would be one to what was not shown. It is known once the redactor is closed.
func (d *DiffRedactor) Hidden() int { return d.hidden }

// HiddenAt is the first file with such a line; "" if there is none, or its name is what is hidden.
func (d *DiffRedactor) HiddenAt() string { return d.at }

// hide counts a line of which something was taken out.
func (d *DiffRedactor) hide() {
	if d.hidden++; d.hidden == 1 {
		d.at = d.file
	}
}

// Write takes all of p or fails.
func (d *DiffRedactor) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n') + 1
		part := p[:i]
		if i == 0 {
			part = p
		}
		p = p[len(part):]
		if d.long = d.long || len(d.line)+len(part) > diffLineMax; !d.long {
			d.line = append(d.line, part...)
		}
		if i == 0 {
			continue
		}
		if err := d.take(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// take takes a line.
func (d *DiffRedactor) take() error {
	line := string(d.line)
	if d.long {
		line = line[:min(1, len(line))] + unscanned + "\n"
		d.hide()
	}
	d.line, d.long = d.line[:0], false
	if d.hunk == nil {
		return d.head(line)
	}
	if err := d.hunk.take(line); err != nil {
		return err
	}
	if d.hunk.left == [2]int{} {
		return d.endHunk()
	}
	return d.tell(false)
}

// head passes on a line that is none of a hunk's, by itself: it may name a file.
func (d *DiffRedactor) head(line string) error {
	clean := d.scanner.Redact(line)
	from, to := hunkCounts(line)
	switch {
	case from+to > 0: // it begins with a line that both files have
	case clean != line:
		d.file = ""
		d.hide()
	case strings.HasPrefix(line, "+++ "):
		d.file = fileOf(strings.TrimSuffix(line[4:], "\n"))
	}
	if from+to > 0 {
		d.hunk = &hunk{left: [2]int{from, to}}
		for i := range d.hunk.sides {
			s := &d.hunk.sides[i]
			s.clean = d.scanner.Redactor(&s.out)
			s.clean.lined = true
		}
	}
	_, err := io.WriteString(d.to, clean)
	return err
}

// fileOf reads the name of a new file, which git writes in quotes where it has to.
func fileOf(name string) string {
	if plain, err := strconv.Unquote(name); err == nil {
		name = plain
	}
	return strings.TrimPrefix(strings.TrimSuffix(name, "\t"), "b/") // the tab ends a name with blanks
}

// hunkCounts reads how many lines a hunk has of the old file and of the new one; none if the line begins no hunk.
func hunkCounts(line string) (from, to int) {
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[0] != "@@" || fields[3] != "@@" {
		return 0, 0
	}
	count := func(field string) (n int) {
		_, lines, many := strings.Cut(field, ",")
		if !many {
			return 1
		}
		if _, err := fmt.Sscan(lines, &n); err != nil {
			return 0
		}
		return max(n, 0)
	}
	return count(fields[1]), count(fields[2])
}

func (h *hunk) take(line string) error {
	l := hunkLine{sign: line[:1], raw: line[1:]}
	switch l.sign {
	case "+":
		l.of[newer] = true
	case "-":
		l.of[older] = true
	case "\\": // what git says of the line before
	case "\n": // nothing stands before the end of an empty line, either
		l = hunkLine{raw: line, of: [2]bool{true, true}}
	default:
		l.of = [2]bool{true, true}
	}
	h.lines = append(h.lines, l)
	for i := range h.sides {
		if !l.of[i] {
			continue
		}
		h.left[i]--
		if _, err := io.WriteString(h.sides[i].clean, l.raw); err != nil {
			return err
		}
	}
	return nil
}

// endHunk passes on what is left of a hunk.
func (d *DiffRedactor) endHunk() error {
	err := errors.Join(d.hunk.sides[older].clean.Close(), d.hunk.sides[newer].clean.Close())
	if err == nil {
		err = d.tell(true)
	}
	d.hunk = nil
	return err
}

// tell passes on the lines of a hunk of which it is known what is shown; of one that has ended that is all.
func (d *DiffRedactor) tell(ended bool) error {
	h := d.hunk
	for len(h.lines) > 0 {
		l := h.lines[0]
		if !ended && (l.of[older] && !h.sides[older].knows() || l.of[newer] && !h.sides[newer].knows()) {
			return nil
		}
		text := l.raw
		for i := range h.sides {
			if !l.of[i] {
				continue
			}
			switch shown := h.sides[i].next(); {
			case text == l.raw:
				text = shown
			case shown != l.raw && shown != text: // each file hides another part of it
				text = unscanned + "\n"
			}
		}
		if l.of[newer] && !l.of[older] && text != l.raw {
			d.hide()
		}
		if _, err := io.WriteString(d.to, l.sign+text); err != nil {
			return err
		}
		h.lines = h.lines[1:]
	}
	return nil
}

// knows reports whether it is known what is shown of the next line.
func (s *side) knows() bool { return bytes.IndexByte(s.out.Bytes(), '\n') >= 0 }

// next is what is shown of the next line, as far as that is known.
func (s *side) next() string {
	line, _ := s.out.ReadString('\n') // the last may have no end
	return line
}

// Close writes the rest. No more can be written.
func (d *DiffRedactor) Close() error {
	var err error
	if len(d.line) > 0 || d.long {
		err = d.take()
	}
	if d.hunk != nil {
		err = errors.Join(err, d.endHunk())
	}
	return err
}
