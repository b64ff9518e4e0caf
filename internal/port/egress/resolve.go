package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// addrsMax is how many addresses of one name are kept.
const addrsMax = 32

// names asks the resolver once for each name and keeps the answer: what it says later leads nowhere else.
type names struct {
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	own     func() []netip.Addr // addresses of this machine
	limits  Limits

	mu    sync.Mutex
	known map[string]*pin
}

// pin is one name. Whoever holds turn may ask.
type pin struct {
	turn  chan struct{}
	asked bool
	addrs []netip.Addr
	why   string // it must not be reached
}

// lookup returns the pinned addresses of an allowed name, or the answer that refuses it. That a name was not found is not kept.
func (n *names) lookup(ctx context.Context, a Answer) ([]netip.Addr, Answer) {
	n.mu.Lock()
	p := n.known[a.Host]
	if p == nil && len(n.known) < n.limits.Hosts {
		p = &pin{turn: make(chan struct{}, 1)}
		n.known[a.Host] = p
	}
	n.mu.Unlock()
	if p == nil {
		return nil, a.refuse(http.StatusForbidden, "this session has looked up too many names")
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, a.refuse(http.StatusBadGateway, "the name server took too long")
	}
	if !p.asked {
		ctx, cancel := context.WithTimeout(ctx, n.limits.DialTime)
		defer cancel()
		addrs, err := n.resolve(ctx, a.Host)
		if err != nil || len(addrs) == 0 {
			return nil, a.refuse(http.StatusBadGateway, "its name was not found")
		}
		p.asked, p.addrs = true, slices.Clone(addrs[:min(len(addrs), addrsMax)])
		p.why = a.Addresses(addrs).Why
		for _, own := range n.own() {
			if p.why == "" && slices.ContainsFunc(addrs, func(a netip.Addr) bool { return leadsTo(a) == leadsTo(own) }) {
				p.why = "it has an address of this machine"
			}
		}
		slices.SortStableFunc(p.addrs, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() }) // IPv4 first
	}
	if p.why != "" {
		return nil, a.refuse(http.StatusForbidden, p.why)
	}
	return p.addrs, a
}

// systemResolve asks as this machine does. The resolver hands IPv4 addresses out mapped into IPv6.
func systemResolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	return addrs, err
}

// systemAddrs are the addresses of this machine's interfaces; an error leaves those that are not public anyway.
func systemAddrs() (out []netip.Addr) {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Addr().Unmap())
		}
	}
	return out
}

func systemDial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext(ctx, "tcp", to.String())
}

// dial tries the addresses one after another within DialTime, each with its share of what is left.
func (s *serving) dial(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	until := time.Now().Add(s.cfg.Limits.DialTime)
	var last error
	for i, addr := range addrs {
		share := time.Until(until) / time.Duration(len(addrs)-i)
		try, cancel := context.WithTimeout(ctx, share)
		conn, err := s.cfg.Dial(try, netip.AddrPortFrom(addr, port))
		cancel()
		if err == nil {
			return s.own(conn), nil
		}
		last = err
	}
	return nil, last
}

// owned is a connection that ends with the door.
type owned struct {
	net.Conn
	stop func() bool
}

func (s *serving) own(conn net.Conn) net.Conn {
	return &owned{conn, context.AfterFunc(s.ctx, func() { conn.Close() })}
}

func (o *owned) Close() error {
	o.stop()
	return o.Conn.Close()
}

func (o *owned) CloseWrite() error { return closeWrite(o.Conn) }

// closeWrite tells the other end that nothing more comes. A connection that cannot be closed by half is closed.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
