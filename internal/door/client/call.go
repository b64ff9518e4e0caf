package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// answerBytesMax bounds one document.
const answerBytesMax = 64 << 20

// Call asks a verb and returns the document that answers it. What only reads, and a decision, is asked again of a daemon that
// had to be started again.
func Call[In, Out any](ctx context.Context, c *Client, v api.Verb[In, Out], in In) (out Out, err error) {
	ask := func() error { return c.ask(ctx, v.Spec, in, &out) }
	switch {
	case v.Again != "":
		err = c.decide(ctx, v.Name(in), v.Again+v.Name(in), ask)
	case v.Method == http.MethodGet:
		err = c.surely(ctx, ask)
	default:
		err = ask()
	}
	return out, err
}

// Do is Call for a verb that answers nothing.
func Do[In any](ctx context.Context, c *Client, v api.Verb[In, api.Nothing], in In) error {
	_, err := Call(ctx, c, v, in)
	return err
}

// Copy asks a verb that is answered with a stream and writes that to w. A stream that was cut, or whose trailer carries a
// problem, is an error.
func Copy[In any](ctx context.Context, c *Client, v api.Stream[In], in In, w io.Writer) error {
	resp, err := c.send(ctx, v.Spec, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(writer{w}, resp.Body); err != nil {
		var writing *writeError
		if errors.As(err, &writing) {
			return writing.err
		}
		return c.broken(ctx, err)
	}
	return streamEnd(resp, nil)
}

// streamEnd is why a stream has an end: the problem in its trailer, or whole if there is none.
func streamEnd(resp *http.Response, whole error) error {
	trailer := resp.Trailer.Get(api.TrailerProblem)
	if trailer == "" {
		return whole
	}
	var body api.Problem
	if err := json.Unmarshal([]byte(trailer), &body); err != nil {
		return problem.Errorf(problem.Internal, "sallyport daemon status", "the daemon's answer broke off: %w", err)
	}
	return body.Err()
}

// ask asks once and decodes the answer into out.
func (c *Client) ask(ctx context.Context, s api.Spec, in, out any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Within,
		problem.Errorf(problem.Unavailable, "sallyport daemon status", "the daemon took longer than %s to answer", s.Within))
	defer cancel()
	resp, err := c.send(ctx, s, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return c.broken(ctx, err)
	}
	if _, none := out.(*api.Nothing); none {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return problem.Errorf(problem.Internal, "sallyport daemon stop", "the daemon's answer cannot be read: %w", err)
	}
	return nil
}

// writeError marks an error of the caller's writer, which is not the daemon's.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }
func (e *writeError) Unwrap() error { return e.err }

type writer struct{ w io.Writer }

func (w writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}
