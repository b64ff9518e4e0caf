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

// transcript writes what was said, line by line; events are marked as ours.
func transcript(ctx context.Context, c *client.Client, change, session string, w io.Writer) error {
	in, out := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := c.Transcript(ctx, change, session, out)
		out.CloseWithError(err) // never fails
		read <- err
	}()
	shown := said(in, w)
	in.CloseWithError(errReader)
	if err := <-read; err != nil && !errors.Is(err, errReader) {
		return err
	}
	return shown
}

var errReader = errors.New("the reader left")

// said renders a transcript.
func said(in io.Reader, w io.Writer) error {
	for lines := json.NewDecoder(in); ; {
		var l recorded
		err := lines.Decode(&l)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return problem.Errorf(problem.Internal, "sallyport daemon status", "the transcript cannot be read: %w", err)
		}
		if l.Stream == "event" {
			l.Text = "[sallyport] " + l.Text
		}
		if _, err := io.WriteString(w, l.Text+"\n"); err != nil {
			return err
		}
	}
}
