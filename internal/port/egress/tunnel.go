package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// open makes a tunnel: to the host, or to ourselves where it is looked into. The host is connected before the client is told that
// it may speak, so that a failure can be read; no byte goes there before the client's hello was judged.
func (c *client) open(a Answer) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	addrs, a := c.names.lookup(ctx, a)
	if a.Status != 0 {
		c.refuse(a)
		return
	}
	var up net.Conn
	if a.Way == Tunnel {
		var err error
		if up, err = c.dial(ctx, addrs, a.Port); err != nil {
			c.refuse(a.refuse(http.StatusBadGateway, because(err)))
			return
		}
		defer up.Close()
	}
	if c.established() != nil {
		c.decided(a.refuse(http.StatusBadGateway, whyGone), Failed)
		return
	}
	first, hello, err := c.hello()
	if err != nil {
		c.decided(a.refuse(http.StatusBadRequest, err.Error()), Refused)
		return
	}
	if judged := a.Hello(hello); judged.Status != 0 {
		c.decided(judged, Refused)
		c.alert(judged, hello)
		return
	}
	if a.Way == Inspect {
		c.inspect(a, first)
		return
	}
	c.decided(a, Allowed)
	if c.splice(first, up) {
		c.decided(a.refuse(http.StatusForbidden, "the host cut the tunnel off: "+whyBody), Refused)
	}
}

var (
	errHelloLate  = errors.New("no TLS hello came in time")
	errHelloShort = errors.New("the program closed the tunnel before it sent anything")
	errHelloLong  = errors.New("its TLS hello is too long")
)

// hello reads a client's first bytes until they can be judged, and returns all that was read.
func (c *client) hello() ([]byte, Hello, error) {
	c.conn.SetReadDeadline(time.Now().Add(c.cfg.Limits.HeaderTime))
	defer c.conn.SetReadDeadline(time.Time{})
	var first []byte
	buf := make([]byte, 4<<10)
	for due := 1; len(first) < 2*helloBytesMax; {
		n, err := c.r.Read(buf)
		first = append(first, buf[:n]...)
		if len(first) >= due { // not at each byte, as which it may come
			h, more := ReadHello(first)
			if more == 0 {
				return first, h, nil
			}
			due = len(first) + more
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, Hello{}, errHelloLate
		case err != nil:
			return nil, Hello{}, errHelloShort
		}
	}
	return nil, Hello{}, errHelloLong
}

// tlsRefused is the alert access_denied, fatal, in a record of its own: what a TLS client can read.
var tlsRefused = []byte{21, 3, 1, 0, 2, 2, 49}

// alert refuses what is in a tunnel in the words of what is in it.
func (c *client) alert(a Answer, h Hello) {
	switch {
	case h.Plain:
		_ = c.say(a, false)
	case h.Why == "":
		_, _ = patient{c.conn, c.cfg.Limits.Idle}.Write(tlsRefused)
	}
	c.linger()
}

// replayed is a connection whose first bytes were read already.
type replayed struct {
	net.Conn
	r io.Reader
}

func (r replayed) Read(p []byte) (int, error) { return r.r.Read(p) }

// inspect ends a tunnel's TLS here and judges each request in it.
func (c *client) inspect(a Answer, first []byte) {
	leaf, err := c.cfg.CA.leaf(a.Host)
	if err != nil {
		c.decided(a.refuse(http.StatusBadGateway, "the host could not make a certificate for it"), Failed)
		return
	}
	conn := replayed{patient{c.conn, c.cfg.Limits.Idle}, io.MultiReader(bytes.NewReader(first), c.r)}
	inside := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Limits.HeaderTime)
	err = inside.HandshakeContext(ctx)
	cancel()
	if err != nil {
		c.decided(a.refuse(http.StatusBadGateway, "the program does not trust the certificate of this sandbox, or speaks no HTTP/1.1"), Failed)
		return
	}
	newClient(c.serving, inside, &a, c.cfg.Limits.Idle).serve()
	_ = inside.CloseWrite()
}

// spliced is a tunnel's two directions: either keeps the other alive.
type spliced struct {
	idle time.Duration
	last atomic.Int64 // when a byte went either way, Unix nanoseconds
	up   int64        // bytes that went to the host
	over atomic.Bool
}

// splice copies both ways until both ends are through, one breaks, nothing moved for Idle, or more went up than may; then it is true.
func (c *client) splice(first []byte, up net.Conn) bool {
	s := &spliced{idle: c.cfg.Limits.Idle}
	s.last.Store(time.Now().UnixNano())
	var both sync.WaitGroup
	both.Go(func() {
		s.copy(up, c.conn, io.MultiReader(bytes.NewReader(first), c.r), func(n int) bool {
			s.up += int64(n)
			return c.spend(n) && s.up <= c.cfg.Limits.RequestBytes
		})
	})
	s.copy(c.conn, up, up, func(int) bool { return true })
	both.Wait()
	return s.over.Load()
}

// copy moves bytes one way. At the end of src it closes that way alone; on anything else it closes both.
func (s *spliced) copy(dst, src net.Conn, r io.Reader, may func(n int) bool) {
	buf := make([]byte, 32<<10)
	for {
		src.SetReadDeadline(time.Now().Add(s.idle))
		n, err := r.Read(buf)
		if n > 0 {
			if !may(n) {
				s.over.Store(true)
				break
			}
			s.last.Store(time.Now().UnixNano())
			dst.SetWriteDeadline(time.Now().Add(s.idle))
			if _, err := dst.Write(buf[:n]); err != nil {
				break
			}
			s.last.Store(time.Now().UnixNano())
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			_ = closeWrite(dst)
			return
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, s.last.Load())) < s.idle:
			continue
		}
		break
	}
	dst.Close()
	src.Close()
}
