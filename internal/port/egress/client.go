package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// client is one connection from inside, or the inside of a tunnel that ends here.
type client struct {
	*serving
	conn   net.Conn
	r      *bufio.Reader
	w      *bufio.Writer
	tunnel *Answer // that the connection runs in; nil = none
}

// newClient serves a connection; what it is told may wait for it as long as patience.
func newClient(s *serving, conn net.Conn, tunnel *Answer, patience time.Duration) *client {
	c := &client{serving: s, conn: conn, tunnel: tunnel}
	c.r, c.w = bufio.NewReader(conn), bufio.NewWriterSize(patient{conn, patience}, 4<<10)
	return c
}

// patient gives a client that stands still the time of Idle for each write.
type patient struct {
	net.Conn
	idle time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(p.idle)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// serve answers one request after another.
func (c *client) serve() {
	for c.next() {
	}
}

// next answers one request and reports whether another may follow.
func (c *client) next() bool {
	limits := c.cfg.Limits
	c.conn.SetReadDeadline(time.Now().Add(limits.Idle))
	if _, err := c.r.Peek(1); err != nil {
		return false
	}
	c.conn.SetReadDeadline(time.Now().Add(limits.HeaderTime))
	raw, err := readHead(c.r, limits.HeaderBytes)
	c.conn.SetReadDeadline(time.Time{})
	if err != nil {
		return c.unread(err)
	}
	a := c.cfg.decide(raw, c.tunnel)
	if a.Status == 0 && a.counted() && !c.spend(len(raw)) {
		a = a.refuse(http.StatusForbidden, whySent)
	}
	if a.Status != 0 {
		return c.refuse(a)
	}
	switch a.Way {
	case Tunnel, Inspect:
		c.open(a)
		return false
	case Own: // a client that asks also for the door itself through a proxy; each request in it is told
		c.tunnel = &a
		return c.established() == nil
	}
	return c.relay(a)
}

// unread answers a head that could not be read to its end.
func (c *client) unread(err error) bool {
	a := Answer{}
	if c.tunnel != nil {
		a.Host, a.Port = c.tunnel.Host, c.tunnel.Port
	}
	switch {
	case errors.Is(err, errHeadLong):
		a = a.refuse(http.StatusRequestHeaderFieldsTooLarge, "its headers are longer than the limit")
	case errors.Is(err, os.ErrDeadlineExceeded):
		a = a.refuse(http.StatusRequestTimeout, "its headers took too long to come")
	default:
		return false
	}
	return c.refuse(a)
}

// refuse tells and answers what may not go, and reports whether another request may follow: not after one that could be read in two ways.
func (c *client) refuse(a Answer) bool {
	v := Refused
	if a.Status/100 == 5 || a.Status == http.StatusUnauthorized {
		v = Failed
	}
	c.decided(a, v)
	keep := a.head.length == 0 && !a.head.last && a.Status != http.StatusBadRequest && a.head.method != "" && a.head.method != "CONNECT"
	if err := c.say(a, keep); err != nil {
		return false
	}
	if !keep {
		c.linger()
	}
	return keep
}

// say writes an answer of the door's own. Its first line has the reason too: many clients show nothing else of a proxy's answer.
func (c *client) say(a Answer, keep bool) error {
	what := strings.TrimSpace(plain(a.Method) + " " + plain(a.where()))
	if what == "" {
		what = "this request"
	}
	text := fmt.Sprintf("sallyport: %s is refused: %s\n", what, a.Why)
	if a.Status/100 == 5 || a.Status == http.StatusUnauthorized {
		text = fmt.Sprintf("sallyport: %s failed: %s\n", what, a.Why)
	}
	if next := a.next(); next != "" {
		text += next + "\n"
	}
	connection := "close"
	if keep {
		connection = "keep-alive"
	}
	retry := ""
	if a.Status == http.StatusTooManyRequests { // what is used up does not come back by waiting; vendors' clients know this header
		retry = "X-Should-Retry: false\r\n"
	}
	if a.Status == http.StatusServiceUnavailable { // there is another credential now
		retry = "X-Should-Retry: true\r\nRetry-After: 1\r\n"
	}
	fmt.Fprintf(c.w, "HTTP/1.1 %d sallyport: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%sConnection: %s\r\n\r\n",
		a.Status, plain(strings.TrimPrefix(a.where()+": "+a.Why, ": ")), len(text), retry, connection)
	if a.head.method != http.MethodHead {
		io.WriteString(c.w, text)
	}
	return c.w.Flush()
}

// where is the host, for a person.
func (a Answer) where() string {
	switch {
	case a.Route != nil:
		return "/" + a.Route.Name + a.Path
	case a.Port == 0 || a.Port == httpsPort || a.Port == httpPort:
		return a.Host
	}
	return fmt.Sprintf("%s:%d", a.Host, a.Port)
}

// next is the way out of a refusal, where there is one.
func (a Answer) next() string {
	switch {
	case a.Status != http.StatusForbidden || a.Route != nil:
		return ""
	case a.Why == whySent:
		return "The host lets nothing more out of this session. Its work so far is kept."
	}
	if host, why := hostName(a.Host); why == "" {
		return fmt.Sprintf("The owner can allow a host under egress: in sallyport.yaml, or with --egress %s.", host)
	}
	return "The owner can allow hosts by name under egress: in sallyport.yaml."
}

// Bounds of what is read and dropped so that a client can read the answer before its connection ends.
const (
	lingerBytes = 1 << 20
	lingerTime  = 2 * time.Second
)

// linger lets a client that still sends read what it was told.
func (c *client) linger() {
	_ = closeWrite(c.conn)
	c.conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.r, lingerBytes) // what it sends is not for anybody
}

// established answers a CONNECT that is allowed.
func (c *client) established() error {
	io.WriteString(c.w, "HTTP/1.1 200 Connection established\r\n\r\n")
	return c.w.Flush()
}
