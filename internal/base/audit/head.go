package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"sallyport/internal/base/problem"
)

// Mark names an entry and what it was: all that is before it is bound to it.
type Mark struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// String is the mark as ParseMark reads it.
func (m Mark) String() string { return strconv.FormatInt(m.Seq, 10) + ":" + m.Hash }

// ParseMark reads NUMBER:HASH, as verify prints it.
func ParseMark(text string) (Mark, error) {
	number, hash, _ := strings.Cut(text, ":")
	m, ok := mark(number, hash)
	if !ok {
		return Mark{}, problem.Errorf(problem.Usage, "sallyport audit verify", "%q is not NUMBER:HASH, as audit verify prints it", text)
	}
	return m, nil
}

func mark(number, hash string) (Mark, bool) {
	seq, err := strconv.ParseInt(number, 10, 64)
	raw, bad := hex.DecodeString(hash)
	return Mark{Seq: seq, Hash: hash}, err == nil && bad == nil && seq > 0 && len(raw) == 32 && hash == strings.ToLower(hash)
}

// HeadName is the head record's file beside the database.
//
// The chain alone cannot tell a log from one that was cut off at its end, or written anew
// from some entry on. So with each commit the last entry's number and hash go to a file of
// their own, which only grows: a line for each group of entries. It is written after the commit,
// without waiting for the disk: it may know less than the database (after a crash the last
// group, after a loss of power some seconds), never more. What the database lacks of it is missing.
const HeadName = "audit.head"

// Head is the open head record. One user at a time; its caller names the operation that each call is.
type Head struct {
	file *os.File
	last Mark
}

// headLineMax bounds one line of it.
const headLineMax = 128

// OpenHead opens the record at path, which is made, 0600, if it is absent. A last line that
// a crash cut off is taken away.
func OpenHead(path string) (*Head, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit's head record: %w", err)
	}
	h := &Head{file: f}
	if err := h.mend(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the audit's head record: %w", err), f.Close())
	}
	return h, nil
}

// mend cuts off what stands behind the last end of line, and reads the last line.
func (h *Head) mend() error {
	size, err := h.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, 2*headLineMax))
	if _, err := h.file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	end := bytes.LastIndexByte(tail, '\n') + 1
	if end < len(tail) && (end > 0 || int64(len(tail)) == size) {
		if err := h.file.Truncate(size - int64(len(tail)-end)); err != nil {
			return err
		}
	}
	lines := strings.Split(strings.TrimSuffix(string(tail[:end]), "\n"), "\n")
	h.last, _ = parseLine(lines[len(lines)-1])
	return nil
}

// Last is the mark that the record ends with; zero if it has none, or none that can be read.
func (h *Head) Last() Mark { return h.last }

// Note adds a mark behind the last.
func (h *Head) Note(m Mark) error {
	if m == h.last {
		return nil
	}
	if _, err := fmt.Fprintf(h.file, "%d %s\n", m.Seq, m.Hash); err != nil {
		return errors.Join(fmt.Errorf("write the audit's head record: %w", err), h.mend()) // half a line may stand there
	}
	h.last = m
	return nil
}

// Close brings the record to the disk and closes it.
func (h *Head) Close() error {
	if h == nil {
		return nil
	}
	return errors.Join(h.file.Sync(), h.file.Close())
}

func parseLine(line string) (Mark, bool) {
	number, hash, _ := strings.Cut(line, " ")
	return mark(number, hash)
}

// ReadMarks reads the record at path. A record that is not there has no marks. damaged is
// the number of the first line that cannot be read, 0 if there is none; the marks behind it count all the same.
func ReadMarks(path string) (marks []Mark, damaged int, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the audit's head record: %w", err)
	}
	whole := raw[:bytes.LastIndexByte(raw, '\n')+1] // the rest is being written, or a crash cut it off
	number := 0
	for line := range strings.Lines(string(whole)) {
		number++
		if m, ok := parseLine(strings.TrimSuffix(line, "\n")); ok {
			marks = append(marks, m)
		} else if damaged == 0 {
			damaged = number
		}
	}
	return marks, damaged, nil
}
