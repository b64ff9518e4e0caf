package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// Surely is Call for a verb that may be asked twice with the effect of once: of a daemon that went away meanwhile and had to be
// started again, it is asked again.
func Surely[In, Out any](ctx context.Context, c *Client, v api.Verb[In, Out], in In) (out Out, err error) {
	err = c.surely(ctx, func() error { return c.ask(ctx, v.Spec, in, &out) })
	return out, err
}

// WatchChat hands the lines of a chat to each until each returns an error (that one), ctx ends (its cause), or the daemon goes away:
// ErrStopped if it was stopped, ErrCut if it died.
func (c *Client) WatchChat(ctx context.Context, in api.WatchChat, each func(api.ChatLine) error) error {
	resp, err := c.send(ctx, api.ChatWatch.Spec, in)
	if errors.Is(err, ErrNoDaemon) || errors.Is(err, errGone) {
		return fmt.Errorf("%w: %w", ErrCut, err)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()

	for lines := json.NewDecoder(resp.Body); ; {
		var l api.ChatLine
		err := lines.Decode(&l)
		var syntax *json.SyntaxError
		var shape *json.UnmarshalTypeError
		switch {
		case err == nil:
			if err := each(l); err != nil {
				return err
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &syntax), errors.As(err, &shape):
			return problem.Errorf(problem.Internal, "sallyport daemon stop", "the daemon's line of a chat cannot be read: %w", err)
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("%w: %w", ErrCut, err)
		default:
			return streamEnd(resp, ErrStopped) // a daemon that stops ends the lines
		}
	}
}
