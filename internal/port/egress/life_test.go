package egress

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
)

// When a session ends, everything that its door holds ends with it, whatever it waits for. That no goroutine is left is seen
// by TestMain.
func TestADoorEndsWhateverItWaitsFor(t *testing.T) {
	stuck, asked := make(chan struct{}), make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/flood") {
			for b := make([]byte, 1<<16); ; {
				if _, err := w.Write(b); err != nil {
					return
				}
				select {
				case asked <- struct{}{}:
				default:
				}
			}
		}
		asked <- struct{}{}
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer s.Close()
	far, _ := raw(t, "")
	ca, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com", Ports: []uint16{80, 443, 8443}}, {Host: "*.slow.example.com"}, {Host: "api.example.com", Methods: []string{"GET"}}}
		w.cfg.CA = ca
		w.cfg.Routes = []Route{modelRoute(t, s.URL)}
		w.at = map[uint16]string{80: s.Listener.Addr().String(), 443: far}
		dial := w.cfg.Dial
		w.cfg.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if host == "a.slow.example.com" {
				stuck <- struct{}{}
				<-ctx.Done()
			}
			return []netip.Addr{publicAddr}, ctx.Err()
		}
		w.cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Port() == 8443 {
				stuck <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, to)
		}
	})
	say := func(s string) net.Conn {
		c := w.connect()
		io.WriteString(c, s)
		return c
	}
	w.connect()
	say("GET http://exa")
	say(get("http://example.com/", "example.com"))
	<-asked
	say("POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10\r\n\r\nhalf")
	<-asked
	say("POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	<-asked
	say(get("http://example.com/flood", "example.com")) // and nobody reads
	<-asked
	say(connect("a.slow.example.com:443"))
	<-stuck
	say(connect("example.com:8443"))
	<-stuck
	for _, more := range []string{"", hello("example.com")[:20], hello("example.com")} {
		c := say(connect("example.com:443"))
		http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"})
		io.WriteString(c, more)
	}
	c := say(connect("api.example.com:443"))
	http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"})
	io.WriteString(c, hello("api.example.com"))
	w.stop()
}

func TestAListenerThatBreaksIsAnError(t *testing.T) {
	d, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := pipes{make(chan net.Conn), make(chan struct{})}
	p.Close()
	if err := d.Serve(t.Context(), p); err == nil {
		t.Error("a listener that broke is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Serve(ctx, pipes{make(chan net.Conn), make(chan struct{})}); err != nil {
		t.Errorf("a door that was asked to end: %v", err)
	}
}

// A machine without descriptors has some again soon.
func TestAListenerThatCannotAcceptNowGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		p := busy{pipes{make(chan net.Conn), make(chan struct{})}, make(chan error, 1)}
		p.fails <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Serve(ctx, p) }()
		c := timed{p: p.pipes}.connect()
		go io.WriteString(c, get("/x", Inside))
		resp, _ := answered(t, c)
		c.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%d", resp.StatusCode)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// busy is a listener that fails first.
type busy struct {
	pipes
	fails chan error
}

func (b busy) Accept() (net.Conn, error) {
	select {
	case err := <-b.fails:
		return nil, err
	default:
		return b.pipes.Accept()
	}
}

func TestAFaultEndsOneConnectionAndIsTold(t *testing.T) {
	w := open(t, func(w *world) {
		route := modelRoute(t, "http://127.0.0.1:1")
		route.Admit = func(context.Context) (func(), error) { panic("a fault") }
		w.cfg.Routes = []Route{route}
	})
	c := w.connect()
	io.WriteString(c, get("/model/models", Inside))
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("it answered %q", b)
	}
	if resp, _ := w.send(get("/x", Inside)); resp.StatusCode != http.StatusNotFound {
		t.Errorf("the next: %d", resp.StatusCode)
	}
	if told := w.decisions(); told[0].Verdict != Failed {
		t.Errorf("told %+v", told)
	}
}

// Whatever a program sends in whatever pieces, the door answers or hangs up, and serves the next one.
func TestNothingThatIsSentBreaksADoor(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	defer s.Close()
	w := open(t, func(w *world) {
		w.cfg.Rules = triedRules()
		w.cfg.Routes = []Route{modelRoute(t, s.URL)}
		w.at[80], w.at[443] = s.Listener.Addr().String(), s.Listener.Addr().String()
	})
	good := "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	seeds := []string{good, get("/model/models", Inside), connect("example.com:443") + hello("example.com") + "rest"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := []byte(seeds[r.IntN(len(seeds))])
		for range r.IntN(8) {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		c := w.connect()
		at := r.IntN(len(b))
		c.Write(b[:at])
		c.Write(b[at:])
		c.(*net.UnixConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	if _, body := w.send(good); body != "hello" {
		t.Errorf("then %q", body)
	}
}

// What the door takes for a head, Go's own reader takes for the same request with the same body.
func FuzzAHeadIsReadInOneWay(f *testing.F) {
	for _, y := range tries() {
		f.Add(y.raw)
	}
	c, err := Config{Rules: triedRules()}.checked()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, said string) {
		head := headOf(said)
		h, why := parseHead(head)
		a := c.decide(head, nil)
		if why != "" {
			if a.Status == 0 {
				t.Fatalf("%q is no head (%s), and goes %s", said, why, a.Way)
			}
			return
		}
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(head) + strings.Repeat("x", 10))))
		if a.Status == 0 && err != nil {
			t.Fatalf("%q goes %s; a server says %v", said, a.Way, err)
		}
		if err != nil {
			return
		}
		isChunked := len(req.TransferEncoding) > 0
		if req.Method != h.method || isChunked != (h.length == chunked) || !isChunked && req.ContentLength != h.length {
			t.Fatalf("%q: %s %d, and a server reads %s %d %v", said, h.method, h.length, req.Method, req.ContentLength, req.TransferEncoding)
		}
		if a.Status == 0 && a.Way == Forward && (req.URL.Hostname() == "" || lower(req.URL.Hostname()) != a.Host) {
			t.Fatalf("%q goes to %s, and a server reads %s", said, a.Host, req.URL.Host)
		}
	})
}
