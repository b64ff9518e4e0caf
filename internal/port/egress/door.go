package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Door serves one session.
type Door struct {
	cfg   Config
	names names
	sent  atomic.Int64 // bytes that went up
	tell  sync.Mutex
}

// New checks a configuration and returns its door. Errors: problem.Usage, naming the rule or route.
func New(c Config) (*Door, error) {
	c, err := c.checked()
	if err != nil {
		return nil, err
	}
	if c.Resolve == nil {
		c.Resolve = systemResolve
	}
	if c.Dial == nil {
		c.Dial = systemDial
	}
	return &Door{cfg: c, names: names{resolve: c.Resolve, own: systemAddrs, limits: c.Limits, known: map[string]*pin{}}}, nil
}

// filled puts the defaults where nothing stands.
func (l Limits) filled() Limits {
	put(&l.Conns, 64)
	put(&l.HeaderBytes, 64<<10)
	put(&l.RequestBytes, 64<<20)
	put(&l.SentBytes, 1<<30)
	put(&l.HeaderTime, 10*time.Second)
	put(&l.DialTime, 10*time.Second)
	put(&l.Idle, 10*time.Minute)
	put(&l.Hosts, 1000)
	return l
}

func put[T int | int64 | time.Duration](to *T, value T) {
	if *to <= 0 {
		*to = value
	}
}

// serving is a door while it is open.
type serving struct {
	*Door
	ctx    context.Context // ends with Serve
	hosts  *http.Transport // to pinned, public addresses
	routes *http.Transport // to where the owner wrote
	slots  chan struct{}
	parts  sync.WaitGroup
}

// Serve answers what comes to the listener until ctx ends, and closes it. Then no connection is left and nil is returned; an error is
// that of a listener that broke.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &serving{Door: d, ctx: ctx, slots: make(chan struct{}, d.cfg.Limits.Conns)}
	s.hosts, s.routes = s.transport(s.dialHost), s.transport(s.dialRoute)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	err := s.accept(l)
	asked := ctx.Err() != nil
	stop()
	l.Close()
	cancel()
	s.parts.Wait()
	s.hosts.CloseIdleConnections()
	s.routes.CloseIdleConnections()
	if asked {
		return nil
	}
	return err
}

// acceptPause is how long a listener rests that cannot open another connection, such as when descriptors are used up.
const acceptPause = 50 * time.Millisecond

func (s *serving) accept(l net.Listener) error {
	for {
		conn, err := l.Accept()
		var again interface{ Temporary() bool }
		switch {
		case err == nil:
		case errors.As(err, &again) && again.Temporary():
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
			continue
		default:
			return err
		}
		s.admit(s.own(conn))
	}
}

// admit gives a connection its goroutine, or tells it that there are too many.
func (s *serving) admit(conn net.Conn) {
	select {
	case s.slots <- struct{}{}:
		s.parts.Go(func() {
			defer func() { <-s.slots }()
			defer conn.Close()
			defer s.survive()
			newClient(s, conn, nil, s.cfg.Limits.Idle).serve()
		})
	default:
		defer conn.Close()
		a := Answer{}.refuse(http.StatusServiceUnavailable, "too many connections are open at once")
		s.decided(a, Refused)
		_ = newClient(s, conn, nil, s.cfg.Limits.HeaderTime).say(a,
			false) // who does not read it is not waited for: a connection that has just come has room for so little
	}
}

// survive keeps a fault in serving one connection from ending every other session of this machine.
func (s *serving) survive() {
	if fault := recover(); fault != nil {
		s.decided(Answer{}.refuse(http.StatusInternalServerError, "a fault in the door ended a connection"), Failed)
	}
}

// transport forwards single requests: HTTP/1.1 to exactly the address that dial gives, no proxy, no redirect, nothing unpacked.
func (s *serving) transport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	only := &http.Protocols{}
	only.SetHTTP1(true)
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{RootCAs: s.cfg.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		TLSHandshakeTimeout:    s.cfg.Limits.DialTime,
		Protocols:              only,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		MaxIdleConns:           32,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// dialHost opens a connection to the pinned addresses of a name that was looked up.
func (s *serving) dialHost(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := splitHostPort(addr)
	if err != nil {
		return nil, err
	}
	addrs, a := s.names.lookup(ctx, Answer{Host: host, Port: port})
	if a.Status != 0 {
		return nil, errors.New(a.Why)
	}
	return s.dial(ctx, addrs, port)
}

// dialRoute opens a connection to the base of a route, which may be anywhere.
func (s *serving) dialRoute(ctx context.Context, _, addr string) (net.Conn, error) {
	host, port, err := splitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return s.dial(ctx, []netip.Addr{ip}, port)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Limits.DialTime)
	defer cancel()
	addrs, err := s.cfg.Resolve(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Name: host, IsNotFound: true}
	}
	if err != nil {
		return nil, err
	}
	return s.dial(ctx, addrs[:min(len(addrs), addrsMax)], port)
}

func splitHostPort(addr string) (string, uint16, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, why := portNumber(text)
	if why != "" {
		return "", 0, errors.New(why)
	}
	return host, port, nil
}

// decided tells what became of a request.
func (d *Door) decided(a Answer, v Verdict) {
	if d.cfg.Decided == nil {
		return
	}
	told := Decision{At: time.Now(), Method: cut(a.Method, 32), Host: cut(a.Host, nameBytesMax), Port: a.Port,
		Path: cut(a.Path, 256), Verdict: v, Why: a.Why, Rule: a.Rule}
	if a.Route != nil {
		told.Route = a.Route.Name
	}
	d.tell.Lock()
	defer d.tell.Unlock()
	d.cfg.Decided(told)
}

// counted reports whether what goes up counts towards the limit of a session. What its model is asked does not: budgets bound that, and a
// conversation that has gone on for months asks no less of it than one that began today (CH-080).
func (a Answer) counted() bool { return a.Route == nil && a.Way != Own }

// spend counts bytes that go up, and reports whether the session may send them.
func (d *Door) spend(n int) bool {
	return d.sent.Add(int64(n)) <= d.cfg.Limits.SentBytes
}
