package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// ErrNoDaemon says that no daemon of the home answers.
var ErrNoDaemon = problem.New(problem.Unavailable, "no daemon of this home runs")

// Client speaks to one daemon.
type Client struct {
	mu     sync.Mutex
	socket string
	home   string // "" where only the socket is known
	pid    int    // of the daemon that answered last; 0 if none was asked
	http   *http.Client
	// restart starts the daemon again where it went away; nil where that is not this client's to do.
	restart func(ctx context.Context) error
}

// verbTime bounds a verb that answers with one document; a stream has no bound but its context.
const verbTime = 2 * time.Minute

// answerBytesMax bounds one document.
const answerBytesMax = 64 << 20

// New returns a client of the socket at path; nothing is dialled before the first verb.
func New(socket string) *Client {
	c := &Client{socket: socket}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		DisableCompression: true,
		MaxIdleConns:       2,
		IdleConnTimeout:    time.Minute,
	}}
	return c
}

// Socket is the path of the socket.
func (c *Client) Socket() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// dial connects; ErrNoDaemon if nobody answers there.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	socket := c.Socket()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nobody answers on %q", ErrNoDaemon, socket)
	}
	return conn, err
}

// send makes one request and returns its answer if it is a success; the problem otherwise.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		payload = bytes.NewReader(raw)
	}
	address := "http://sallyport" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, payload)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	nameUs(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, problemOf(resp)
	}
	return resp, nil
}

func nameUs(h http.Header) {
	h.Set(api.HeaderVersion, strconv.Itoa(api.Version))
	h.Set(api.HeaderBuild, api.Build())
	h.Set("Content-Type", "application/json")
}

// broken tells a daemon that is not there from one that went away, and from a caller that gave up.
func (c *Client) broken(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrNoDaemon):
		return err
	}
	return problem.Errorf(problem.Unavailable, "sallyport daemon status", "%w: no answer on %q: %w", errGone, c.Socket(), unwrapURL(err))
}

// unwrapURL drops the made-up address that net/http puts in front.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// problemOf reads the problem of an answer that is no success.
func problemOf(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var body api.Problem
	if err != nil || json.Unmarshal(raw, &body) != nil || body.Kind == "" {
		return problem.Errorf(problem.Internal, "sallyport daemon status", "the daemon answered %s without saying why", resp.Status)
	}
	return body.Err()
}

// call makes a request and decodes its one document into out; out nil ignores it. What only
// reads is asked again of a daemon that had to be started again.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	if method != http.MethodGet {
		return c.once(ctx, method, path, query, body, out)
	}
	return c.surely(ctx, func() error { return c.once(ctx, method, path, query, body, out) })
}

// once is call without a second try.
func (c *Client) once(ctx context.Context, method, path string, query url.Values, body, out any) error {
	return c.within(ctx, verbTime, method, path, query, body, out)
}

// within is once for a verb that may take another time.
func (c *Client) within(ctx context.Context, limit time.Duration, method, path string, query url.Values, body, out any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		problem.Errorf(problem.Unavailable, "sallyport daemon status", "the daemon took longer than %s to answer", limit))
	defer cancel()
	resp, err := c.send(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return c.broken(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return problem.Errorf(problem.Internal, "sallyport daemon stop", "the daemon's answer cannot be read: %w", err)
	}
	return nil
}

// copy streams an answer to w. A stream that was cut, or whose trailer carries a problem, is an error.
func (c *Client) copy(ctx context.Context, path string, query url.Values, w io.Writer) error {
	resp, err := c.send(ctx, http.MethodGet, path, query, nil)
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
	if trailer := resp.Trailer.Get(api.TrailerProblem); trailer != "" {
		var body api.Problem
		if err := json.Unmarshal([]byte(trailer), &body); err != nil {
			return problem.Errorf(problem.Internal, "sallyport daemon status", "the daemon's answer broke off: %w", err)
		}
		return body.Err()
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
