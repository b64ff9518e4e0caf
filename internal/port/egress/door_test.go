package egress

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/leaktest"
	"sallyport/internal/rule/secret"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var publicAddr = netip.MustParseAddr("93.184.215.14")

// world is a door with a network behind it that leads to servers of the test, whatever address is asked.
type world struct {
	t      *testing.T
	cfg    Config
	socket string
	door   *Door
	stop   func() // ends the door and waits for it

	mu    sync.Mutex
	told  []Decision
	dials []netip.AddrPort
	at    map[uint16]string // port asked → address of a server of the test
}

func (w *world) resolve(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{publicAddr}, nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, to)
	at := w.at[to.Port()]
	w.mu.Unlock()
	if at == "" {
		at = to.String()
		if !to.Addr().IsLoopback() {
			return nil, fmt.Errorf("no server of the test is %s", to)
		}
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", at)
}

// open starts a door; with sets what differs from one that has no rule.
func open(t *testing.T, with func(w *world)) *world {
	t.Helper()
	w := &world{t: t, at: map[uint16]string{}}
	w.cfg = Config{Resolve: w.resolve, Dial: w.dial, Decided: func(d Decision) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, d)
	}}
	if with != nil {
		with(w)
	}
	d, err := New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.door = d
	dir, err := os.MkdirTemp("", "eg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w.socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx, l) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// decisions are what was told so far.
func (w *world) decisions() []Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func (w *world) dialled() []netip.AddrPort {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dials)
}

// connect opens a connection to the door. It has a deadline only so that a broken door ends the test.
func (w *world) connect() net.Conn {
	w.t.Helper()
	c, err := net.Dial("unix", w.socket)
	if err != nil {
		w.t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	w.t.Cleanup(func() { c.Close() })
	return c
}

// send writes raw bytes and reads one answer.
func (w *world) send(raw string) (*http.Response, string) {
	w.t.Helper()
	c := w.connect()
	defer c.Close()
	io.WriteString(c, raw) // a door that has heard enough may have closed it
	return w.read(c, bufio.NewReader(c))
}

func (w *world) read(_ net.Conn, r *bufio.Reader) (*http.Response, string) {
	w.t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		w.t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Errorf("the answer breaks off: %v", err)
	}
	return resp, string(body)
}

// client is an HTTP client that uses the door as its proxy, with an authority that it trusts.
func (w *world) client(roots *x509.CertPool) *http.Client {
	tr := &http.Transport{
		Proxy:              http.ProxyURL(&url.URL{Scheme: "http", Host: Inside}),
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", w.socket) },
		DisableCompression: true,
	}
	tr.TLSClientConfig = clientTLS(roots)
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// direct is a client that asks the door itself, as an agent does for its model.
func (w *world) direct() *http.Client {
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", w.socket) }, DisableCompression: true}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func parseURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// portOf is the port of a server of the test.
func portOf(t *testing.T, raw string) uint16 {
	t.Helper()
	return netip.MustParseAddrPort(strings.TrimPrefix(strings.TrimPrefix(raw, "https://"), "http://")).Port()
}

const theKey = "sk-live-of-the-owner"

func modelRoute(t *testing.T, base string) Route {
	return Route{Name: "model", Base: parseURL(t, base), Header: "Authorization", Value: secret.Hold("Bearer " + theKey),
		Methods: []string{"GET", "POST"}, Paths: []string{"/responses", "/models", "/chat/completions", "/messages"}}
}
