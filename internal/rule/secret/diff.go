package secret

import (
	"bytes"
	"errors"
	"io"
)

// DiffRedactor is a Redactor for a unified diff. What stands on several lines, as a key or wrapped base64, is seen
// also behind the sign that each line of a diff begins with. What comes out is for reading: it cannot be applied where something
// was taken out.
type DiffRedactor struct {
	scanner *Scanner
	to      *Redactor
	line    []byte // unfinished
	cut     bool   // the beginning of the line is passed on already
	sign    byte   // of the lines in block
	block   []byte // lines of one sign, without it
	lines   int
}

// DiffRedactor returns one that writes to w. The caller closes it; w stays open.
func (s *Scanner) DiffRedactor(w io.Writer) *DiffRedactor {
	return &DiffRedactor{scanner: s, to: s.Redactor(w)}
}

// diffBlockMax bounds the lines that are looked at together, and the part of a line that is kept.
const diffBlockMax = 1 << 20

// Write takes all of p or fails.
func (d *DiffRedactor) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n') + 1
		if i == 0 {
			i = len(p)
		}
		d.line = append(d.line, p[:i]...)
		whole := d.line[len(d.line)-1] == '\n'
		p = p[i:]
		if !whole && len(d.line) < diffBlockMax {
			continue
		}
		if err := d.take(whole); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (d *DiffRedactor) take(whole bool) error {
	line := d.line
	defer func() { d.line, d.cut = d.line[:0], !whole }()
	sign := line[0]
	if d.cut || !whole || sign != '+' && sign != '-' {
		if err := d.pass(); err != nil {
			return err
		}
		_, err := d.to.Write(line)
		return err
	}
	if sign != d.sign || len(d.block)+len(line) > diffBlockMax {
		if err := d.pass(); err != nil {
			return err
		}
	}
	d.sign, d.lines = sign, d.lines+1
	d.block = append(d.block, line[1:]...)
	return nil
}

// pass gives on the lines of one sign. A line alone says the same behind its sign.
func (d *DiffRedactor) pass() error {
	if d.lines == 0 {
		return nil
	}
	text := string(d.block)
	if d.lines > 1 {
		text = d.scanner.Redact(text)
	}
	d.block, d.lines = d.block[:0], 0
	var signed bytes.Buffer
	for line := range bytes.Lines([]byte(text)) {
		signed.WriteByte(d.sign)
		signed.Write(line)
	}
	if text == "" || text[len(text)-1] != '\n' {
		signed.WriteByte('\n')
	}
	_, err := d.to.Write(signed.Bytes())
	return err
}

// Close writes the rest. No more can be written.
func (d *DiffRedactor) Close() error {
	err := d.pass()
	if len(d.line) > 0 {
		_, lerr := d.to.Write(d.line)
		err, d.line = errors.Join(err, lerr), nil
	}
	return errors.Join(err, d.to.Close())
}
