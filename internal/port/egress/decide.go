package egress

import (
	"net/http"
	"net/netip"
	"strings"
)

// Inside is where a session finds its door: what its programs ask of this address through the door itself is asked of the door.
const Inside = "127.0.0.1:3128"

// Way is how a request goes on.
type Way string

const (
	Tunnel  Way = "tunnel"  // CONNECT; what is in it is TLS to exactly this host, and nobody looks into it
	Inspect Way = "inspect" // CONNECT; it ends here, and each request in it is judged
	Forward Way = "forward" // one request to a host
	Through Way = "route"   // one request to a Route
	Own     Way = "own"     // CONNECT to the door itself
)

// Answer is what became of a request, before anything of it has left.
type Answer struct {
	Status int    // of the refusal; 0 = it may go
	Why    string // it may not, one clause
	Way    Way
	Method string
	Host   string // canonical; of a refusal as asked
	Port   uint16
	Path   string // as it goes on, escaped
	Query  string
	Rule   string // that allowed it
	From   string // where that is written
	Route  *Route
	head   head
}

func (a Answer) refuse(status int, why string) Answer {
	a.Status, a.Why, a.Rule, a.From = status, why, "", ""
	return a
}

// decide judges the head of a request as it comes to the door, or in a tunnel that is looked into. It depends on nothing but the
// configuration.
func (c Config) decide(raw []byte, tunnel *Answer) Answer {
	h, why := parseHead(raw)
	a := Answer{Method: h.method, head: h}
	switch {
	case tunnel != nil && tunnel.Way == Inspect:
		a.Host, a.Port = tunnel.Host, tunnel.Port
		fallthrough
	default:
		if why != "" {
			return a.refuse(http.StatusBadRequest, why)
		}
	}
	if tunnel != nil && tunnel.Way == Inspect {
		return c.inTunnel(a, *tunnel)
	}
	switch {
	case h.method == "CONNECT" && tunnel == nil:
		return c.connect(a)
	case h.method == "CONNECT":
		return a.refuse(http.StatusBadRequest, "it asks for a tunnel inside a tunnel")
	case strings.HasPrefix(h.target, "/"):
		if h.hosts > 1 {
			return a.refuse(http.StatusBadRequest, "it has several Host headers")
		}
		return c.route(a, h.target)
	}
	return c.absolute(a)
}

// connect judges a CONNECT.
func (c Config) connect(a Answer) Answer {
	h := a.head
	a.Host = h.target
	host, port, why := authority(h.target, 0)
	if why != "" {
		return a.refuse(http.StatusBadRequest, why)
	}
	a.Host, a.Port = host, port
	if h.length != 0 {
		return a.refuse(http.StatusBadRequest, "a CONNECT has no body")
	}
	if h.hosts > 1 || h.hosts == 1 && !sameHost(h.host, host, port, port) {
		return a.refuse(http.StatusBadRequest, "its Host header names another host")
	}
	if isInside(h.target) {
		a.Way = Own
		return a
	}
	if a.Host, why = hostName(host); why != "" {
		a.Host = host
		return a.refuse(http.StatusForbidden, why)
	}
	a.Way = Inspect
	var found *Rule
	for i, r := range c.Rules {
		if !r.covers(a.Host) || !r.opens(port, httpsPort) {
			continue
		}
		if !r.Inspected() {
			a.Way, a.Rule, a.From = Tunnel, r.Host, r.From
			return a
		}
		if found == nil {
			found = &c.Rules[i]
		}
	}
	switch {
	case found == nil:
		return a.refuse(http.StatusForbidden, c.closed(a.Host))
	case c.CA == nil:
		return a.refuse(http.StatusForbidden, "its rule names methods or paths, and the host cannot read TLS here to judge them")
	}
	a.Rule, a.From = found.Host, found.From
	return a
}

// closed tells why no rule opens a host: it is not there, or it is and this port is not.
func (c Config) closed(host string) string {
	for _, r := range c.Rules {
		if r.covers(host) {
			return "its rule does not open this port"
		}
	}
	return "no egress rule of this sandbox names it"
}

// absolute judges a request with a whole URL.
func (c Config) absolute(a Answer) Answer {
	h := a.head
	scheme, rest, ok := strings.Cut(h.target, "://")
	if !ok {
		return a.refuse(http.StatusBadRequest, "its target is no URL")
	}
	at := strings.IndexAny(rest, "/?#")
	if at < 0 {
		at = len(rest)
	}
	a.Host = rest[:at]
	if lower(scheme) != "http" {
		return a.refuse(http.StatusBadRequest, "a whole URL can be asked for over http:// only; for https:// a client asks for a tunnel (CONNECT)")
	}
	if strings.HasPrefix(rest[at:], "?") {
		rest = rest[:at] + "/" + rest[at:]
	}
	path, query, why := splitPath(rest[at:])
	if why != "" {
		return a.refuse(http.StatusBadRequest, why)
	}
	host, port, why := authority(rest[:at], httpPort)
	if why != "" {
		return a.refuse(http.StatusBadRequest, why)
	}
	a.Host, a.Port, a.Path, a.Query = host, port, path, query
	if h.hosts > 1 || h.hosts == 0 && h.minor == 1 || h.hosts == 1 && !sameHost(h.host, host, port, httpPort) {
		return a.refuse(http.StatusBadRequest, "its Host header and its URL name two hosts")
	}
	if isInside(rest[:at]) {
		return c.route(a, rest[at:])
	}
	if a.Host, why = hostName(host); why != "" {
		a.Host = host
		return a.refuse(http.StatusForbidden, why)
	}
	return c.forward(a, httpPort)
}

// inTunnel judges a request to the host of its tunnel.
func (c Config) inTunnel(a, tunnel Answer) Answer {
	h := a.head
	if !strings.HasPrefix(h.target, "/") {
		return a.refuse(http.StatusBadRequest, "its target is no path")
	}
	var why string
	if a.Path, a.Query, why = splitPath(h.target); why != "" {
		return a.refuse(http.StatusBadRequest, why)
	}
	if h.hosts != 1 || !sameHost(h.host, tunnel.Host, tunnel.Port, httpsPort) {
		return a.refuse(http.StatusBadRequest, "its Host header names another host than its tunnel")
	}
	return c.forward(a, httpsPort)
}

// forward judges what is known whole: host, port, method and path.
func (c Config) forward(a Answer, usual uint16) Answer {
	a.Way = Forward
	switch {
	case never(a.Method):
		return a.refuse(http.StatusForbidden, "no rule can allow this method: TRACE and TRACK send headers back, and CONNECT is for a tunnel")
	case a.head.upgrade:
		return a.refuse(http.StatusForbidden, "it asks to switch to another protocol (Upgrade), which no rule allows")
	}
	known := false
	for _, r := range c.Rules {
		if !r.covers(a.Host) || !r.opens(a.Port, usual) {
			continue
		}
		if r.admits(a.Method, a.Path) {
			a.Rule, a.From = r.Host, r.From
			return a
		}
		known = true
	}
	if known {
		return a.refuse(http.StatusForbidden, "its rule does not allow this method and path")
	}
	return a.refuse(http.StatusForbidden, c.closed(a.Host))
}

// never reports whether a method passes by no rule, however it is spelt.
func never(method string) bool {
	return oneOf(strings.ToUpper(method), []string{"TRACE", "TRACK", "CONNECT"})
}

// route judges a request to the door itself.
func (c Config) route(a Answer, target string) Answer {
	path, query, why := splitPath(target)
	if why != "" {
		return a.refuse(http.StatusBadRequest, why)
	}
	a.Path, a.Query, a.Way = path, query, Through
	name, _, _ := strings.Cut(path[1:], "/")
	for i := range c.Routes {
		if c.Routes[i].Name == name {
			a.Route = &c.Routes[i]
		}
	}
	if a.Route == nil {
		return a.refuse(http.StatusNotFound, "this address serves nothing by itself: it is the sandbox's proxy, its only way out")
	}
	a.Host, a.Port = a.Route.at()
	a.Path = path[1+len(name):]
	if a.Path == "" {
		a.Path = "/"
	}
	clean, why := cleanPath(a.Path)
	switch {
	case why != "":
		return a.refuse(http.StatusBadRequest, why)
	case strings.Contains(a.Path, "%"): // the same path in other letters would be counted, or judged, as another
		return a.refuse(http.StatusForbidden, "its path has percent escapes, which a route does not allow")
	case a.head.upgrade:
		return a.refuse(http.StatusForbidden, "it asks to switch to another protocol (Upgrade), which no rule allows")
	case !oneOf(a.Method, a.Route.Methods) || !under(clean, a.Route.Paths) || !a.Route.only(a.Method, clean):
		return a.refuse(http.StatusForbidden, "the route does not allow this method and path")
	}
	if a.Route.Wire != "" && a.head.length != 0 {
		if why := a.head.readable(); why != "" {
			return a.refuse(http.StatusForbidden, why)
		}
	}
	a.Query = plainParams(query)
	a.Rule = a.Route.Name
	return a
}

// Addresses judges what a name leads to.
func (a Answer) Addresses(addrs []netip.Addr) Answer {
	if why := allPublic(addrs); why != "" {
		return a.refuse(http.StatusForbidden, why)
	}
	return a
}

// Hello judges the first bytes in a tunnel.
func (a Answer) Hello(h Hello) Answer {
	switch {
	case h.Why != "":
		return a.refuse(http.StatusForbidden, h.Why)
	case h.Encrypted:
		return a.refuse(http.StatusForbidden, "its TLS hello hides the host that it is for (ECH)")
	case h.Name == "":
		return a.refuse(http.StatusForbidden, "its TLS hello names no host (SNI)")
	case lower(h.Name) != a.Host:
		return a.refuse(http.StatusForbidden, "its TLS hello names another host than the tunnel was asked for")
	}
	return a
}

// isInside reports whether a host and port are the door's own, as a program in the sandbox sees it.
func isInside(hostport string) bool {
	return hostport == Inside || hostport == "localhost"+strings.TrimPrefix(Inside, "127.0.0.1")
}

// sameHost reports whether a Host header names exactly this host and port.
func sameHost(header, host string, port, usual uint16) bool {
	name, at, why := authority(header, usual)
	return why == "" && lower(name) == lower(host) && at == port
}
