package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// recorded is one line of a transcript: what the program wrote, or an event of its session.
type recorded struct {
	Stream string `json:"stream"` // stdout, stderr or event
	Text   string `json:"text"`   // without its newline
}

var errReader = errors.New("the reader left")

// transcript shows the lines that log writes, as recorded or for a reader.
func (a *app) transcript(ctx context.Context, log func(io.Writer) error) error {
	if a.json {
		return eachLine(log, func(l json.RawMessage) error { a.line(l); return nil })
	}
	return a.page(ctx, func(w io.Writer) error { return eachLine(log, printRecorded(a, w)) })
}

// eachLine hands the JSON lines that are written to each.
func eachLine(write func(io.Writer) error, each func(json.RawMessage) error) error {
	in, out := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(out)
		out.CloseWithError(err) // never fails
		wrote <- err
	}()
	read := readLines(in, each)
	in.CloseWithError(errReader)
	if err := <-wrote; err != nil && !errors.Is(err, errReader) {
		return err
	}
	return read
}

func readLines(in io.Reader, each func(json.RawMessage) error) error {
	for lines := json.NewDecoder(in); ; {
		var line json.RawMessage
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

// ourMark stands before an event of the host's in a transcript.
const ourMark = "[sallyport] "

// printRecorded writes recorded lines: what the program wrote with a mark before every row, so that none can be taken for an event.
func printRecorded(a *app, w io.Writer) func(json.RawMessage) error {
	s := a.sheet(a.Out)
	s.palette = false // a pager's text is escaped
	to := &checked{Writer: w}
	s.w = to
	return func(line json.RawMessage) error {
		var l recorded
		if err := json.Unmarshal(line, &l); err != nil {
			return unreadable(err)
		}
		if l.Stream == "event" {
			s.hung(ourMark, ourMark, inert.Block(l.Text, len(l.Text)))
		} else {
			s.quote(l.Text)
		}
		return to.err
	}
}

func unreadable(err error) error {
	return problem.Errorf(problem.Internal, "sallyport daemon status", "the transcript cannot be read: %w", err)
}
