package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"sallyport/internal/client"
	"sallyport/internal/problem"
)

// recorded is one line of a transcript: what the program wrote, or an event of its session.
type recorded struct {
	Stream string `json:"stream"` // stdout, stderr or event
	Text   string `json:"text"`   // without its newline
}

var errReader = errors.New("the reader left")

// transcript hands the lines of a session's transcript to each, as recorded.
func transcript(ctx context.Context, c *client.Client, change, session string, each func(json.RawMessage) error) error {
	in, out := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := c.Transcript(ctx, change, session, out)
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

// said writes a recorded line as it was said; an event is marked as ours.
func said(w io.Writer) func(json.RawMessage) error {
	return func(line json.RawMessage) error {
		var l recorded
		if err := json.Unmarshal(line, &l); err != nil {
			return unreadable(err)
		}
		if l.Stream == "event" {
			l.Text = "[sallyport] " + l.Text
		}
		_, err := io.WriteString(w, l.Text+"\n")
		return err
	}
}

func unreadable(err error) error {
	return problem.Errorf(problem.Internal, "sallyport daemon status", "the transcript cannot be read: %w", err)
}
