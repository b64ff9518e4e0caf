package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestEachLimitIsToldByName(t *testing.T) {
	var arrived atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if arrived.Store(n); err == nil {
			io.WriteString(w, "ok")
		}
	}))
	defer s.Close()
	limited := func(l Limits) *world {
		return open(t, func(w *world) {
			w.cfg.Rules, w.cfg.Limits = []Rule{{Host: "example.com"}, {Host: "*.example.com"}}, l
			w.at[80] = s.Listener.Addr().String()
		})
	}
	post := "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	head := func(size int) string {
		bare := get("http://example.com/", "example.com")
		return bare[:len(bare)-2] + "A: " + strings.Repeat("x", size-len(bare)-len("A: \r\n")) + "\r\n\r\n"
	}
	const size = 5000
	body := strings.Repeat("x", size)
	for name, c := range map[string]struct {
		limits Limits
		raw    string
		status int
		why    string
	}{
		"a long head":           {Limits{HeaderBytes: 2000}, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nA: " + body + "\r\n\r\n", 431, "its headers are longer than the limit"},
		"a head without end":    {Limits{HeaderBytes: 2000}, body, 431, "its headers are longer than the limit"},
		"many headers":          {Limits{}, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n" + strings.Repeat("A: b\r\n", headersMax) + "\r\n", 400, "it has more than 128 headers"},
		"a long path":           {Limits{}, "GET http://example.com/" + strings.Repeat("x", pathBytesMax) + " HTTP/1.1\r\nHost: example.com\r\n\r\n", 400, "its path is longer than 16 KiB"},
		"a long body":           {Limits{RequestBytes: 1000}, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, size, body), 413, whyBody},
		"a long body in chunks": {Limits{RequestBytes: 1000}, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", post, size, body), 413, whyBody},
		"a body of the most":    {Limits{RequestBytes: size}, fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", post, size, body), 200, ""},
		"what a session sends":  {Limits{SentBytes: 1000}, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, size, body), 403, whySent},
		"a body of that length": {Limits{RequestBytes: size}, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", post, size, body), 200, ""},
		"the most headers":      {Limits{}, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n" + strings.Repeat("A: b\r\n", headersMax-1) + "\r\n", 200, ""},
		"the longest head":      {Limits{HeaderBytes: 2000}, head(2000), 200, ""},
		"a longer head":         {Limits{HeaderBytes: 2000}, head(2001), 431, "its headers are longer than the limit"},
		"all that it may send":  {Limits{SentBytes: 2000}, head(2000), 200, ""},
		"a byte more":           {Limits{SentBytes: 2000}, head(2001), 403, whySent},
		"and its heads":         {Limits{SentBytes: 50}, get("http://example.com/"+body, "example.com"), 403, whySent},
	} {
		w := limited(c.limits)
		resp, _ := w.send(c.raw)
		w.stop()
		told := w.decisions()
		if resp.StatusCode != c.status || len(told) != 1 || told[0].Why != c.why {
			t.Errorf("%s: %d, told %+v", name, resp.StatusCode, told)
		}
		if n := arrived.Swap(0); c.status != 200 && n > 1000 {
			t.Errorf("%s: %d bytes arrived", name, n)
		}
	}

	w := limited(Limits{Hosts: 2})
	for i, want := range []int{200, 200, 403, 200} {
		host := fmt.Sprintf("h%d.example.com", i%3)
		if resp, body := w.send(get("http://"+host+"/", host)); resp.StatusCode != want {
			t.Errorf("name %d: %d %s", i, resp.StatusCode, body)
		}
	}

	w = limited(Limits{Conns: 2})
	first, second := w.connect(), w.connect()
	for _, c := range []net.Conn{first, second} { // both are served
		io.WriteString(c, get("http://example.com/", "example.com"))
		w.read(c, bufio.NewReader(c))
	}
	if resp, body := w.send(""); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a third connection: %d %s", resp.StatusCode, body)
	}
}

// TestWhatAModelIsAskedIsNoPartOfWhatASessionSends holds CH-080: a conversation goes on asking its model, however long it lasts and whatever
// it has sent elsewhere. One request has its limit none the less.
func TestWhatAModelIsAskedIsNoPartOfWhatASessionSends(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			io.WriteString(w, "ok")
		}
	}))
	defer s.Close()
	w := open(t, func(w *world) {
		w.cfg.Rules, w.cfg.Limits = []Rule{{Host: "example.com"}}, Limits{SentBytes: 2000, RequestBytes: 1000}
		w.cfg.Routes = []Route{modelRoute(t, s.URL+"/v1/")}
		w.at[80] = s.Listener.Addr().String()
	})
	post := func(target, host string, size int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", target, host, size, strings.Repeat("x", size))
	}
	model := func(size int) string { return post("/model/responses", Inside, size) }
	elsewhere := post("http://example.com/", "example.com", 900)
	for i, c := range []struct {
		raw    string
		status int
	}{{model(900), 200}, {model(900), 200}, {model(900), 200}, {elsewhere, 200}, {elsewhere, 200}, {elsewhere, 403}, {model(900), 200}, {model(1001), 413}, {elsewhere, 403}} {
		if resp, body := w.send(c.raw); resp.StatusCode != c.status {
			t.Errorf("request %d: %d %s, want %d", i, resp.StatusCode, body, c.status)
		}
	}
}

func TestATunnelThatSendsTooMuchIsCutOff(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan int64, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		n, _ := io.Copy(io.Discard, c)
		c.Close()
		got <- n
	}()
	defer l.Close()
	w := open(t, func(w *world) {
		w.cfg.Rules, w.cfg.Limits = []Rule{{Host: "example.com"}}, Limits{RequestBytes: 100_000}
		w.at[443] = l.Addr().String()
	})
	c := w.connect()
	io.WriteString(c, connect("example.com:443")+hello("example.com"))
	for range 100 {
		if _, err := c.Write(make([]byte, 10_000)); err != nil {
			break
		}
	}
	c.Close()
	if n := <-got; n > 100_000 || n < 50_000 {
		t.Errorf("%d bytes went up", n)
	}
	w.stop()
	if told := w.decisions(); len(told) != 2 || told[0].Verdict != Allowed || told[1].Verdict != Refused || !strings.Contains(told[1].Why, whyBody) {
		t.Errorf("told %+v", told)
	}
}

func TestEitherEndOfATunnelMayStopSpeakingFirst(t *testing.T) {
	said := hello("example.com") + strings.Repeat("x", 100_000)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		said, _ := io.ReadAll(c) // until the client has said all
		fmt.Fprintf(c, "%d bytes", len(said))
	}()
	w := open(t, func(w *world) {
		w.cfg.Rules, w.cfg.Limits = []Rule{{Host: "example.com"}}, Limits{RequestBytes: int64(len(said))}
		w.at[443] = l.Addr().String()
	})
	c := w.connect()
	io.WriteString(c, connect("example.com:443")+said)
	c.(*net.UnixConn).CloseWrite()
	r := bufio.NewReader(c)
	if _, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"}); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(r); string(answer) != fmt.Sprintf("%d bytes", len(said)) || err != nil {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestANameIsAskedOnceAndWhatItSaysLaterLeadsNowhere(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer s.Close()
	answers := [][]netip.Addr{nil, nil, {netip.MustParseAddr("2606:4700::1111"), publicAddr}, {netip.MustParseAddr("127.0.0.1")}}
	asked := 0
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com", Ports: []uint16{80, 8080}}}
		w.at[80] = s.Listener.Addr().String()
		w.cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			asked++
			if asked == 1 {
				return nil, errors.New("lookup example.com on 10.0.0.53:53: server misbehaving")
			}
			return answers[min(asked, 4)-1], nil
		}
	})
	for i, want := range []int{502, 502, 200, 200, 200} { // that it was not found is not kept
		resp, body := w.send("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
		if resp.StatusCode != want || strings.Contains(body, "10.0.0.53") {
			t.Errorf("request %d: %d %s", i, resp.StatusCode, body)
		}
	}
	w.stop()
	if asked != 3 {
		t.Errorf("the resolver was asked %d times", asked)
	}
	for _, to := range w.dialled() {
		if to.Addr() != publicAddr {
			t.Errorf("dialled %s", to)
		}
	}
}

func TestANameOfThisMachineIsNotReachedByItsPublicAddress(t *testing.T) {
	ours := netip.MustParseAddr("93.184.215.14")
	for _, is := range []netip.Addr{ours, netip.MustParseAddr("64:ff9b::5db8:d70e")} { // by IPv6 alone a resolver names it so
		w := open(t, func(w *world) {
			w.cfg.Rules = []Rule{{Host: "example.com"}}
			w.cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{is}, nil }
		})
		w.door.names.own = func() []netip.Addr { return []netip.Addr{ours} }
		if resp, body := w.send(connect("example.com:443")); resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "an address of this machine") {
			t.Errorf("%s: %d %s", is, resp.StatusCode, body)
		}
	}
	for _, a := range systemAddrs() {
		if a.IsLoopback() {
			return
		}
	}
	t.Error("the machine's own addresses are not known")
}

func TestTheNextAddressIsTriedWhereOneDoesNotAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer s.Close()
	other := netip.MustParseAddr("1.1.1.1")
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com"}}
		w.at[80] = s.Listener.Addr().String()
		w.cfg.Resolve = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{other, publicAddr}, nil }
		dial := w.cfg.Dial
		w.cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == other {
				return nil, errors.New("no route")
			}
			return dial(ctx, to)
		}
	})
	if _, body := w.send(get("http://example.com/", "example.com")); body != "ok" {
		t.Error(body)
	}
}
