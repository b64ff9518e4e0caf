package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// try is one thing that a program inside may ask, and what must become of it.
type try struct {
	name   string
	raw    string // what it says to the door
	later  string // and in its tunnel, once it has one: a hello, or a request where the tunnel is looked into
	addrs  string // that the host has, separated by spaces; "" = a public one
	want   Way    // "" = refused
	aims   string // where the try leads through a proxy without rules
	brings string // and what would arrive there; "" = whatever
}

func connect(target string) string {
	return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"
}

func get(url, host string) string { return "GET " + url + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n" }

// toAddress is a CONNECT to a spelling of an address.
func toAddress(spelling, aims string) try {
	return try{name: "CONNECT " + spelling, raw: connect(spelling), aims: aims}
}

func hello(name string) string { return string(records(madeHello(sni(name)))) }

const smuggled = "GET /admin HTTP/1.1\r\nHost: intern.example\r\n\r\n"

func tries() []try {
	ok := hello("example.com")
	out := []try{
		{name: "a tunnel", raw: connect("example.com:443"), later: ok, want: Tunnel, aims: "example.com:443"},
		{name: "a tunnel, in capitals", raw: connect("EXAMPLE.com:443"), later: hello("Example.COM"), want: Tunnel, aims: "example.com:443"},
		{name: "a tunnel of HTTP/1.0", raw: "CONNECT example.com:443 HTTP/1.0\r\n\r\n", later: ok, want: Tunnel, aims: "example.com:443"},
		{name: "a tunnel, Host without port is another", raw: "CONNECT ports.example.com:8443 HTTP/1.1\r\nHost: ports.example.com:443\r\n\r\n", aims: "ports.example.com:8443"},
		{name: "below a star", raw: connect("a.b.wild.example.org:443"), later: hello("a.b.wild.example.org"), want: Tunnel, aims: "a.b.wild.example.org:443"},
		{name: "the star's own name", raw: connect("wild.example.org:443"), aims: "wild.example.org:443"},
		{name: "a name that ends like it", raw: connect("evilwild.example.org:443"), aims: "evilwild.example.org:443"},
		{name: "no rule", raw: connect("other.example.com:443"), aims: "other.example.com:443"},
		{name: "another port", raw: connect("example.com:22"), aims: "example.com:22"},
		{name: "the port of plain HTTP", raw: connect("example.com:80"), aims: "example.com:80"},
		{name: "a port of the rule's", raw: connect("ports.example.com:8443"), later: hello("ports.example.com"), want: Tunnel, aims: "ports.example.com:8443"},
		{name: "a port with a zero", raw: connect("example.com:0443"), aims: "example.com:443"},
		{name: "a port with a sign", raw: connect("example.com:+443"), aims: "example.com:443"},
		{name: "no port", raw: connect("example.com"), aims: "example.com:443"},
		{name: "a dot at the end", raw: connect("example.com.:443"), aims: "example.com:443"},
		{name: "a user name", raw: connect("example.com@intern.example:443"), aims: "intern.example:443"},
		{name: "an escape", raw: connect("example%2ecom:443"), aims: "example.com:443"},
		{name: "a zero byte", raw: connect("example.com\x00.wild.example.org:443"), aims: "example.com:443"},
		{name: "wide letters", raw: connect("\uff45xample.com:443"), aims: "example.com:443"},
		{name: "a wide dot", raw: connect("example\u3002com:443"), aims: "example.com:443"},
		{name: "a bare line feed", raw: "CONNECT example.com:443 HTTP/1.1\nHost: example.com:443\n\n", aims: "example.com:443"},
		{name: "two Host headers", raw: "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nHost: intern.example\r\n\r\n", aims: "example.com:443"},
		{name: "a tunnel with a body", raw: "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\nContent-Length: 5\r\n\r\nhello", aims: "example.com:443"},
		{name: "this machine's name", raw: connect("localhost:443"), aims: "127.0.0.1:443"},
		{name: "a name below it", raw: connect("a.localhost:443"), aims: "127.0.0.1:443"},
		{name: "another name in the hello", raw: connect("example.com:443"), later: hello("intern.example"), aims: "example.com:443", brings: "intern.example"},
		{name: "no name in the hello", raw: connect("example.com:443"), later: string(records(madeHello(nil))), aims: "example.com:443"},
		{name: "a hidden name", raw: connect("example.com:443"), later: string(records(madeHello(append(sni("example.com"), extension(extensionECH, []byte{0})...)))), aims: "example.com:443"},
		{name: "a name in pieces", raw: connect("example.com:443"), later: string(records(madeHello(sni("intern.example")), 3, 50, 1)), aims: "example.com:443"},
		{name: "the right name in pieces", raw: connect("example.com:443"), later: string(records(madeHello(sni("example.com")), 3, 50, 1)), want: Tunnel, aims: "example.com:443"},
		{name: "no TLS: HTTP", raw: connect("example.com:443"), later: get("/", "example.com"), aims: "example.com:443", brings: "GET /"},
		{name: "no TLS: SSH", raw: connect("example.com:443"), later: "SSH-2.0-OpenSSH\r\n", aims: "example.com:443", brings: "SSH"},
		{name: "no TLS: zeros", raw: connect("example.com:443"), later: strings.Repeat("\x00", 32), aims: "example.com:443"},
		{name: "an address of the cloud's", raw: connect("example.com:443"), addrs: "169.254.169.254", aims: "example.com:443"},
		{name: "one private address of two", raw: connect("example.com:443"), addrs: "93.184.215.14 10.0.0.1", aims: "example.com:443"},
		{name: "a mapped address", raw: connect("example.com:443"), addrs: "::ffff:93.184.215.14", aims: "example.com:443"},
		{name: "an address with a zone", raw: connect("example.com:443"), addrs: "fe80::1%eth0", aims: "example.com:443"},

		{name: "plain", raw: get("http://example.com/a?b", "example.com"), want: Forward, aims: "example.com:80"},
		{name: "plain, the port said", raw: get("http://example.com:80/", "example.com"), want: Forward, aims: "example.com:80"},
		{name: "plain, no path", raw: get("http://example.com", "example.com"), want: Forward, aims: "example.com:80"},
		{name: "plain, a query alone", raw: get("http://example.com?x", "example.com"), want: Forward, aims: "example.com:80"},
		{name: "plain, no rule", raw: get("http://other.example.com/", "other.example.com"), aims: "other.example.com:80"},
		{name: "plain, another port", raw: get("http://example.com:8080/", "example.com:8080"), aims: "example.com:8080"},
		{name: "plain, a user name", raw: get("http://example.com@intern.example/", "example.com"), aims: "intern.example:80"},
		{name: "plain, a backslash", raw: get("http://intern.example\\@example.com/", "example.com"), aims: "intern.example:80"},
		{name: "plain, a fragment", raw: get("http://intern.example#@example.com/", "example.com"), aims: "intern.example:80"},
		{name: "plain, Host of another", raw: get("http://example.com/", "intern.example"), aims: "example.com:80", brings: "Host: intern.example"},
		{name: "plain, two Hosts", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nHost: intern.example\r\n\r\n", aims: "example.com:80", brings: "intern.example"},
		{name: "plain, no Host", raw: "GET http://example.com/ HTTP/1.1\r\n\r\n", aims: "example.com:80"},
		{name: "plain, TLS by the proxy", raw: get("https://example.com/", "example.com"), aims: "example.com:443"},
		{name: "plain, another scheme", raw: get("ftp://example.com/", "example.com"), aims: "example.com:80"},
		{name: "plain, TRACE", raw: "TRACE http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", aims: "example.com:80"},
		{name: "plain, TRACK in small letters", raw: "track http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", aims: "example.com:80"},
		{name: "plain, CONNECT in small letters", raw: "connect http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", aims: "example.com:80"},
		{name: "plain, upgrade", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", aims: "example.com:80", brings: "websocket"},
		{name: "plain, upgrade to HTTP/2", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: HTTP2-Settings\r\nHTTP2-Settings: AAA\r\n\r\n", aims: "example.com:80"},
		{name: "plain, to an address", raw: get("http://169.254.169.254/latest/", "169.254.169.254"), aims: "169.254.169.254:80", brings: "/latest/"},
		{name: "plain, rebound", raw: get("http://example.com/", "example.com"), addrs: "127.0.0.1", aims: "example.com:80"},
		{name: "plain, CRLF in the target", raw: "GET http://example.com/ HTTP/1.1\r\nX: y\r\n\tHost: intern.example\r\nHost: example.com\r\n\r\n", aims: "example.com:80"},
		{name: "plain, space before the colon", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "plain, a header in a header", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nX: a\nHost: intern.example\r\n\r\n", aims: "example.com:80", brings: "intern.example"},
		{name: "smuggling: length and chunks", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: two lengths", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\nContent-Length: 50\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: the same length twice", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", aims: "example.com:80"},
		{name: "smuggling: a list of lengths", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0, 0\r\n\r\n", aims: "example.com:80"},
		{name: "smuggling: a signed length", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: +0\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: no length", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: \r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: a length of 64 bits", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 9223372036854775808\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "another Expect", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nExpect: 200-ok\r\n\r\n", aims: "example.com:80"},
		{name: "two Expects", raw: "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nExpect: 100-continue\r\n\r\n", aims: "example.com:80"},
		{name: "smuggling: two codings", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: another coding", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: chunks in HTTP/1.0", raw: "POST http://example.com/ HTTP/1.0\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "smuggling: an underscore", raw: "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent_Length: 50\r\n\r\n" + smuggled, aims: "example.com:80", brings: "/admin"},
		{name: "HTTP/2", raw: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{name: "a star", raw: "OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n", aims: "example.com:80"},

		{name: "a method of the rule's", raw: get("http://api.example.com/v1/x", "api.example.com"), want: Forward, aims: "api.example.com:80"},
		{name: "another method", raw: "POST http://api.example.com/v1/x HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 0\r\n\r\n", aims: "api.example.com:80"},
		{name: "another path", raw: get("http://api.example.com/v2", "api.example.com"), aims: "api.example.com:80"},
		{name: "half a segment", raw: get("http://api.example.com/v1x", "api.example.com"), aims: "api.example.com:80"},
		{name: "dots to another path", raw: get("http://api.example.com/v1/../admin", "api.example.com"), aims: "api.example.com:80", brings: "admin"},
		{name: "hidden dots", raw: get("http://api.example.com/v1/%2e%2e/admin", "api.example.com"), aims: "api.example.com:80", brings: "admin"},
		{name: "a hidden slash", raw: get("http://api.example.com/v1/..%2fadmin", "api.example.com"), aims: "api.example.com:80", brings: "admin"},

		{name: "looked into", raw: connect("api.example.com:443"), later: get("/v1/x", "api.example.com"), want: Inspect, aims: "api.example.com:443"},
		{name: "looked into, the port said", raw: connect("api.example.com:443"), later: get("/v1/x", "api.example.com:443"), want: Inspect, aims: "api.example.com:443"},
		{name: "looked into, another path", raw: connect("api.example.com:443"), later: get("/admin", "api.example.com"), aims: "api.example.com:443", brings: "/admin"},
		{name: "looked into, another method", raw: connect("api.example.com:443"), later: "DELETE /v1/x HTTP/1.1\r\nHost: api.example.com\r\n\r\n", aims: "api.example.com:443", brings: "DELETE"},
		{name: "looked into, Host of another", raw: connect("api.example.com:443"), later: get("/v1/x", "intern.example"), aims: "api.example.com:443", brings: "intern.example"},
		{name: "looked into, a whole URL", raw: connect("api.example.com:443"), later: get("https://intern.example/v1/x", "api.example.com"), aims: "api.example.com:443", brings: "intern.example"},
		{name: "looked into, a tunnel in it", raw: connect("api.example.com:443"), later: connect("example.com:443"), aims: "api.example.com:443"},
		{name: "looked into, upgrade", raw: connect("api.example.com:443"), later: "GET /v1/x HTTP/1.1\r\nHost: api.example.com\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", aims: "api.example.com:443"},
		{name: "looked into, smuggling", raw: connect("api.example.com:443"), later: "GET /v1/x HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, aims: "api.example.com:443", brings: "/admin"},
	}
	out = append(out, []try{
		{name: "route", raw: get("/model/models?limit=2", Inside), want: Through, brings: "/model/models"},
		{name: "route, below a path", raw: get("/model/models/x:y", Inside), want: Through},
		{name: "route, asked through the proxy", raw: get("http://"+Inside+"/model/models", Inside), want: Through},
		{name: "route, by name", raw: get("http://localhost:3128/model/models", "localhost:3128"), want: Through},
		{name: "route, another path", raw: get("/model/files", Inside)},
		{name: "route, half a segment", raw: get("/model/models2", Inside)},
		{name: "route, its base alone", raw: get("/model", Inside)},
		{name: "route, dots", raw: get("/model/models/../files", Inside)},
		{name: "route, hidden dots", raw: get("/model/models/%2e%2e/files", Inside)},
		{name: "route, a hidden slash", raw: get("/model/models%2f..%2ffiles", Inside)},
		{name: "route, hidden twice", raw: get("/model/models/%252e%252e/files", Inside)},
		{name: "route, an empty segment", raw: get("/model//models", Inside)},
		{name: "route, another method", raw: "DELETE /model/models HTTP/1.1\r\nHost: x\r\n\r\n", brings: "DELETE"},
		{name: "route, a trace", raw: "TRACE /model/models HTTP/1.1\r\nHost: x\r\n\r\n", brings: "TRACE"},
		{name: "route, upgrade", raw: "GET /model/models HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"},
		{name: "route, none of this name", raw: get("/admin/models", Inside)},
		{name: "route, smuggling", raw: "POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, brings: "/admin"},
	}...)
	for spelling, aims := range map[string]string{
		"127.0.0.1:443": "127.0.0.1:443", "127.1:443": "127.0.0.1:443", "2130706433:443": "127.0.0.1:443", "0x7f000001:443": "127.0.0.1:443",
		"0177.0.0.1:443": "127.0.0.1:443", "0x7f.0.0.0x1:443": "127.0.0.1:443", "127.0.0.1.:443": "127.0.0.1:443", "[::1]:443": "[::1]:443",
		"[::ffff:127.0.0.1]:443": "127.0.0.1:443", "[::ffff:7f00:1]:443": "127.0.0.1:443", "[fe80::1%25eth0]:443": "[fe80::1]:443", "[::]:443": "[::]:443",
		"169.254.169.254:443": "169.254.169.254:443", "2852039166:443": "169.254.169.254:443", "0xa9fea9fe:443": "169.254.169.254:443",
		"\u2460\u2461\u2466.0.0.1:443": "127.0.0.1:443", "\uff11\uff12\uff17.0.0.1:443": "127.0.0.1:443", "127\u30020\u30020\u30021:443": "127.0.0.1:443",
		"93.184.215.14:443": "93.184.215.14:443", "[2606:4700::1111]:443": "[2606:4700::1111]:443", "%31%32%37.0.0.1:443": "127.0.0.1:443", "0:443": "0.0.0.0:443",
	} {
		out = append(out, toAddress(spelling, aims))
	}
	return out
}

// rulesOf the tries.
func triedRules() []Rule {
	return []Rule{{Host: "example.com"}, {Host: "*.wild.example.org"}, {Host: "ports.example.com", Ports: []uint16{8443}},
		{Host: "api.example.com", Methods: []string{"GET"}, Paths: []string{"/v1/"}}}
}

func (y try) addresses() (out []netip.Addr) {
	if y.addrs == "" {
		return []netip.Addr{publicAddr}
	}
	for _, a := range strings.Fields(y.addrs) {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// headOf is the head of what is said.
func headOf(said string) []byte {
	head, _ := readHead(bufio.NewReader(strings.NewReader(said)), 64<<10)
	return head
}

// pure is the answer of the functions alone.
func (y try) pure(c Config) Answer {
	a := c.decide(headOf(y.raw), nil)
	if a.Status == 0 && a.Way != Through {
		a = a.Addresses(y.addresses())
	}
	switch {
	case a.Status != 0 || y.later == "":
	case a.Way == Tunnel:
		h, _ := ReadHello([]byte(y.later))
		a = a.Hello(h)
	case a.Way == Inspect:
		if in := c.decide(headOf(y.later), &a); in.Status != 0 {
			return in
		}
	}
	return a
}

// running is the answer of a door: what the program reads, and what was told of it.
func (y try) running(t *testing.T, w *world, inside *x509.CertPool) (allowed bool, told Decision) {
	t.Helper()
	c := w.connect()
	defer c.Close()
	io.WriteString(c, y.raw)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: strings.Fields(y.raw)[0]})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	allowed = resp.StatusCode == http.StatusOK
	if allowed && y.later != "" {
		allowed = y.inTunnel(t, c, inside)
	}
	w.stop()
	all := w.decisions()
	if len(all) != 1 {
		t.Fatalf("it was told %d times: %+v", len(all), all)
	}
	return allowed, all[0]
}

// inTunnel says what is to be said in a tunnel and reports whether the host answered.
func (y try) inTunnel(t *testing.T, c net.Conn, inside *x509.CertPool) bool {
	t.Helper()
	if !strings.HasPrefix(y.raw, "CONNECT api.") {
		io.WriteString(c, y.later)
		first := make([]byte, 7)
		n, err := io.ReadFull(c, first)
		if got := string(first[:n]); err != nil && !errors.Is(err, io.EOF) || n > 0 && got != "reached" && got != string(tlsRefused) && got != "HTTP/1." {
			t.Fatalf("read %q, %v", got, err)
		}
		return string(first) == "reached"
	}
	host, _, _ := net.SplitHostPort(strings.Fields(y.raw)[1])
	in := tls.Client(c, &tls.Config{RootCAs: inside, ServerName: host})
	io.WriteString(in, y.later)
	resp, err := http.ReadResponse(bufio.NewReader(in), nil)
	if err != nil {
		t.Fatalf("no answer inside: %v", err)
	}
	return resp.StatusCode == http.StatusOK
}

func TestTheRunningDoorAnswersAsTheRulesDo(t *testing.T) {
	ca, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	inside := x509.NewCertPool()
	inside.AppendCertsFromPEM(ca.PEM())
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "reached") }))
	defer plain.Close()
	api := httptest.NewUnstartedServer(plain.Config.Handler)
	leaf, err := ca.leaf("api.example.com")
	if err != nil {
		t.Fatal(err)
	}
	api.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
	api.StartTLS()
	defer api.Close()
	far := answering(t, "reached")
	for _, y := range tries() {
		t.Run(y.name, func(t *testing.T) {
			w := open(t, func(w *world) {
				w.cfg.Rules, w.cfg.CA, w.cfg.Roots = triedRules(), ca, inside
				w.cfg.Routes = []Route{modelRoute(t, plain.URL+"/v1")}
				w.cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) { return y.addresses(), nil }
				w.at = map[uint16]string{80: plain.Listener.Addr().String(), 443: far, 8443: far}
				if strings.Contains(y.raw, "api.example.com") {
					w.at[443] = api.Listener.Addr().String()
				}
			})
			pure := y.pure(w.door.cfg)
			if allowed := pure.Status == 0; allowed != (y.want != "") || allowed && pure.Way != y.want {
				t.Errorf("the rules say %d %q (%s), not %q", pure.Status, pure.Why, pure.Way, y.want)
			}
			allowed, told := y.running(t, w, inside)
			if allowed != (pure.Status == 0) || (told.Verdict == Allowed) != allowed || told.Why != pure.Why {
				t.Errorf("the rules say %d %q, the door %t: %+v", pure.Status, pure.Why, allowed, told)
			}
			if got := w.dialled(); !allowed && y.later == "" && len(got) > 0 {
				t.Errorf("it was refused, and %s was dialled", got)
			}
			if got := (openProxy{t}).try(y.raw, y.later); y.aims != "" && got.to != y.aims || got.to == "" || !strings.Contains(got.sent, y.brings) {
				t.Errorf("control: through an open proxy it reaches %+v, not %s", got, y.aims)
			}
		})
	}
}

// answering is a server that reads something and then says these words, whatever it was.
func answering(t *testing.T, words string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := c.Read(make([]byte, 1<<10)); err == nil {
				io.WriteString(c, words)
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}
