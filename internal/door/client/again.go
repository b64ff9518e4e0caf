package client

import (
	"context"
	"errors"

	"sallyport/internal/base/problem"
)

// errGone marks a daemon that went away under a request: whether it had heard it is not known.
var errGone = problem.New(problem.Unavailable, "the daemon went away")

// surely does something that may be said twice with the effect of once. If the daemon was gone,
// or went away meanwhile, it is started again and told once more. Only a client that Ensure
// made can start one; any other returns the first error.
func (c *Client) surely(ctx context.Context, do func() error) error {
	err := do()
	for again := 0; c.restart != nil && (errors.Is(err, errGone) || errors.Is(err, ErrNoDaemon)); again++ {
		if again > 0 && (again > movesMax || !c.HostMoves()) {
			return err
		}
		if err := c.ComeBack(ctx, err); err != nil { // which waits: on its way out a socket may still take what nobody hears
			return err
		}
		err = do()
	}
	return err
}

// movesMax is how often a host that changes itself may go away under one question: it starts twice, and may go back.
const movesMax = 5

// startError is a daemon that went away and could not be started again; the latter is what is to be told.
type startError struct{ first, start error }

func (e *startError) Error() string   { return e.start.Error() }
func (e *startError) Unwrap() []error { return []error{e.start, e.first} }

// move makes c speak to where another client of the same home does.
func (c *Client) move(to *Client) {
	to.mu.Lock()
	socket, pid, speaks, other := to.socket, to.pid, to.speaks, to.other
	to.mu.Unlock()
	c.mu.Lock()
	c.socket, c.pid, c.speaks, c.other = socket, pid, speaks, other
	c.mu.Unlock()
	c.http.CloseIdleConnections() // they lead to the one that is gone
}

// decide says a person's answer to what is named surely. Where that cannot be done they are told what
// became of their answer, and how to give it again.
func (c *Client) decide(ctx context.Context, name, next string, say func() error) error {
	err := c.surely(ctx, say)
	switch {
	case errors.Is(err, ErrNoDaemon):
		return problem.Errorf(problem.Unavailable, next, "the answer to %s was not recorded: %w", name, err)
	case errors.Is(err, errGone):
		return problem.Errorf(problem.Unavailable, next, "whether the answer to %s was recorded is not known; it may be given again: %w", name, err)
	}
	return err
}
