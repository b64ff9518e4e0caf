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
	"sallyport/internal/door/peer"
)

// ErrNoDaemon says that no daemon of the home answers.
var ErrNoDaemon = problem.New(problem.Unavailable, "no daemon of this home runs")

// Client speaks to one daemon.
type Client struct {
	mu     sync.Mutex
	socket string
	home   string // "" where only the socket is known
	pid    int    // of the daemon that answered last; 0 if none was asked
	speaks int    // the version that both speak; 0 = this program's
	other  error  // a keeper's daemon speaks another version: it answers a few verbs; nil = it answers all
	http   *http.Client
	// restart starts the daemon again where it went away; nil where that is not this client's to do.
	restart func(ctx context.Context) error
	guest   bool // the home is another user's
	// trusted says whose daemon may answer: what the path has led to may be another place by the time it is dialled. Nil for a socket that is
	// named by whoever knows it.
	trusted func(uid int) bool
}

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

// Guest reports whether the home is another user's: few verbs are answered there.
func (c *Client) Guest() bool { return c.guest }

// Other is why the daemon, which a keeper has, answers only the verbs that answer any version; nil if it answers all.
func (c *Client) Other() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.other
}

// Socket is the path of the socket.
func (c *Client) Socket() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.socket
}

// errStranger says that a socket is neither the home's owner's nor root's.
var errStranger = problem.New(problem.Refused, "a stranger answers")

// dial connects; ErrNoDaemon if nobody answers there, errStranger if somebody does who may not.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	socket := c.Socket()
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nobody answers on %q", ErrNoDaemon, socket)
	}
	if err != nil || c.trusted == nil {
		return conn, err
	}
	if uid, ok := peer.UID(conn); !ok || !c.trusted(uid) {
		return nil, errors.Join(problem.Case(errStranger, fmt.Sprintf("ls -l %q", socket),
			"who answers on %q is neither the home's owner nor root", socket), conn.Close())
	}
	return conn, nil
}

// request is one that asks a verb.
func (c *Client) request(ctx context.Context, s api.Spec, in any) (*http.Request, error) {
	raw, err := s.Body(in)
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, s.Method, "http://sallyport"+s.Address(in), bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("write the request: %w", err)
	}
	c.nameUs(req.Header)
	return req, nil
}

// send asks a verb and returns its answer if it is a success; the problem otherwise.
func (c *Client) send(ctx context.Context, s api.Spec, in any) (*http.Response, error) {
	req, err := c.request(ctx, s, in)
	if err != nil {
		return nil, err
	}
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

func (c *Client) nameUs(h http.Header) {
	c.mu.Lock()
	version := c.speaks
	c.mu.Unlock()
	if version == 0 {
		version = api.Version
	}
	h.Set(api.HeaderVersion, strconv.Itoa(version))
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
	case errors.Is(err, errStranger):
		return unwrapURL(err)
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
