package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// recorded is one line of a transcript: what the program wrote, or an event of its session.
type recorded struct {
	Stream string `json:"stream"` // stdout, stderr or event
	Text   string `json:"text"`   // without its newline
}

var errReader = errors.New("the reader left")

// transcript hands the lines of a session's transcript to each, as recorded.
func transcript(ctx context.Context, c *client.Client, change, session string, each func(json.RawMessage) error) error {
	return recordedLines(func(w io.Writer) error {
		return client.Copy(ctx, c, api.ChangeTranscript, api.Transcript{Of: change, Session: session}, w)
	}, each)
}

// recordedLines hands the lines of a transcript to each, as recorded.
func recordedLines(log func(io.Writer) error, each func(json.RawMessage) error) error {
	in, out := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := log(out)
		out.CloseWithError(err) // never fails
		read <- err
	}()
	shown := eachLine(in, each)
	in.CloseWithError(errReader)
	if err := <-read; err != nil && !errors.Is(err, errReader) {
		return err
	}
	return shown
}

func eachLine(in io.Reader, each func(json.RawMessage) error) error {
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
