package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// ErrCut says that a stream ended without its end: the daemon went away.
var ErrCut = problem.New(problem.Unavailable, "the daemon went away")

// ErrStopped says that somebody stopped the daemon, or that it stopped itself and said why: it is not started again unasked.
var ErrStopped = problem.New(problem.Unavailable, "the daemon was stopped")

// eventBytesMax bounds one event.
const eventBytesMax = 16 << 20

// Watch hands a change's notices to each until nothing more happens by itself (nil),
// each returns an error (that one), ctx ends (its cause), or the daemon goes away: ErrStopped if it was
// stopped, ErrCut if it died.
func (c *Client) Watch(ctx context.Context, change string, each func(api.Notice) error) error {
	resp, err := c.send(ctx, api.ChangeWatch.Spec, change)
	if errors.Is(err, ErrNoDaemon) || errors.Is(err, errGone) {
		return c.gone(change, ErrCut) // it was there when the change was
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = readEvents(resp.Body, func(kind string, data []byte) error {
		switch kind {
		case api.NoticeEnd:
			return io.EOF
		case api.NoticeStopped:
			return ErrStopped
		}
		var n api.Notice
		if err := json.Unmarshal(data, &n); err != nil {
			return problem.Errorf(problem.Internal, "sallyport daemon stop", "the daemon's event cannot be read: %w", err)
		}
		return each(n)
	})
	var cut *cutError
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrStopped):
		return c.gone(change, ErrStopped)
	case errors.As(err, &cut):
		return c.gone(change, ErrCut)
	}
	return err
}

// endTime is how long a daemon that let go of its streams may take for its last words.
const endTime = 3 * time.Second

// gone says how the daemon went away under a stream, and why if its last words say so: then it stopped itself.
func (c *Client) gone(change string, how error) error {
	next := "sallyport change watch " + change
	if c.home != "" {
		c.waitGone()
		if c.HostMoves() { // it has ended so that another version begins, or so that this one begins once more
			return problem.Errorf(problem.Unavailable, next, "%w; the host starts again", ErrCut)
		}
		if text, way := lastWords(c.home, 0); way != "" {
			return problem.Errorf(problem.Unavailable, way, "%w: %s; %s goes on at the next command", ErrStopped, text, change)
		}
	}
	return problem.Errorf(problem.Unavailable, next, "%w; %s goes on at the next command", how, change)
}

// HostMoves reports whether a change of the host is under way in a home that a keeper has: its daemon goes away and comes back by itself.
func (c *Client) HostMoves() bool { return c.home != "" && keeper.Kept(c.home) && hostMoves(c.home) }

// Tries reports whether the change of the host that is under way is this one.
func (c *Client) Tries(change string) bool {
	if !c.HostMoves() {
		return false
	}
	r, _, err := keeper.RecordOf(c.home)
	return err != nil || r.Change == change
}

// hostMoves reports whether a home has a record of a change of the host. One that cannot be read is one.
func hostMoves(home string) bool {
	_, armed, err := keeper.RecordOf(home)
	return armed || err != nil && !errors.Is(err, fs.ErrPermission)
}

// ComeBack starts a daemon that died again and has c speak to it. A client that starts none returns died.
func (c *Client) ComeBack(ctx context.Context, died error) error {
	if c.restart == nil {
		return died
	}
	c.waitGone()
	if err := c.restart(ctx); err != nil {
		return &startError{first: died, start: err}
	}
	return nil
}

// waitGone waits for the end of the daemon that answered last, for a while.
func (c *Client) waitGone() {
	c.mu.Lock()
	pid := c.pid
	c.mu.Unlock()
	waitEnd(pid, endTime)
}

// waitEnd waits for the end of a process, at most so long.
func waitEnd(pid int, most time.Duration) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it is gone, or none of ours to look at
	}
	defer unix.Close(fd) // nothing was written
	for deadline := time.Now().Add(most); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1); n > 0 || err != nil &&
			!errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// cutError marks the end of the connection, as opposed to an error of who reads the events.
type cutError struct{ err error }

func (e *cutError) Error() string { return "the event stream was cut" }
func (e *cutError) Unwrap() error { return e.err }

// readEvents reads server-sent events until each returns an error, which it returns.
func readEvents(r io.Reader, each func(kind string, data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), eventBytesMax)
	var kind string
	var data []byte
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if kind != "" || data != nil {
				if err := each(kind, data); err != nil {
					return err
				}
			}
			kind, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			kind = value
		case "data":
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
		}
	}
	return &cutError{lines.Err()}
}
