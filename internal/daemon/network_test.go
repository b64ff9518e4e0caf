package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/live"
	"sallyport/internal/host/storage"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/config"
	"sallyport/internal/rule/secret"
)

// ways is a network of a home with these settings; every name leads to one server of this machine.
type ways struct {
	*network
	mu      sync.Mutex
	decided []egress.Decision
	heard   []string // what the server was asked, with the key it got
}

func newWays(t *testing.T, settings string) *ways {
	t.Helper()
	dir, err := os.MkdirTemp("", "ways") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	writeFile(t, filepath.Join(dir, "sallyport.yaml"), []byte(settings), 0o600)
	w := &ways{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.heard = append(w.heard, r.Host+r.URL.Path+" "+r.Header.Get("x-key"))
		w.mu.Unlock()
		_, _ = io.WriteString(out, "served\n")
	}))
	t.Cleanup(server.Close)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	w.network, err = newNetwork(Options{Home: dir, Outside: Outside{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	}}, config.Look(dir), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(w.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *ways) open(t *testing.T, o live.Outgoing) live.Way {
	t.Helper()
	o.Subject, o.Session, o.Decided = "chg-1a2b3c4d", "sh-abc12", func(d egress.Decision) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.decided = append(w.decided, d)
	}
	way, err := w.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	return way
}

// ask says one line of a request to a way's socket and returns the answer's status and body.
func ask(t *testing.T, way live.Way, line string) (int, string) {
	t.Helper()
	conn, err := net.Dial("unix", way.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	method, to, _ := strings.Cut(line, " ")
	host := "127.0.0.1:3128"
	if u, err := url.Parse(to); method == http.MethodConnect {
		host = to
	} else if err == nil && u.Host != "" {
		host = u.Host
	}
	if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, host); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if method == http.MethodConnect && resp.StatusCode == http.StatusOK {
		return resp.StatusCode, "" // what follows is the tunnel
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAWayOutLeadsWhereTheHomeAndThePersonSayAndNowhereElse(t *testing.T) {
	w := newWays(t, "egress: [listed.example.org, {host: odd.example.org, ports: [8080]}]\n")
	model := &agent.Endpoint{Base: "http://model.example.org/v1", Header: "x-key", Prefix: "Bearer ", Paths: []string{"/chat"}}
	way := w.open(t, live.Outgoing{Agent: "api", Model: model, Key: secret.Hold("k-1234567890"), Asked: []string{"asked.example.org"}})
	for line, want := range map[string]int{
		"GET http://listed.example.org/a":     200,
		"GET http://asked.example.org/b":      200,
		"GET http://odd.example.org:8080/c":   200,
		"GET /model/chat":                     200,
		"GET http://odd.example.org/d":        403,
		"GET http://other.example.org/e":      403,
		"GET http://model.example.org/v1/f":   403,
		"GET /model/files":                    403,
		"GET http://sub.listed.example.org/g": 403,
	} {
		if status, body := ask(t, way, line); status != want {
			t.Errorf("%s: %d, want %d: %s", line, status, want, body)
		}
	}
	info, err := os.Stat(way.Socket)
	if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(way.Socket) != w.folder || way.Bundle != "" || way.Registries {
		t.Errorf("%+v, %v, %v", way, info, err)
	}
	socket := way.Socket
	way.Close()
	way.Close()
	if _, err := net.Dial("unix", socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there after its end: %v", err)
	}
	slices.Sort(w.heard)
	if got := strings.Join(w.heard, "; "); got != "asked.example.org/b ; listed.example.org/a ; model.example.org/v1/chat Bearer k-1234567890; odd.example.org:8080/c " {
		t.Errorf("the servers heard %q", got)
	}
	if n := len(w.decided); n != 9 {
		t.Errorf("%d decisions were told: %+v", n, w.decided)
	}
}

func TestWhatMayReachNothingHasNoWayOut(t *testing.T) {
	model := &agent.Endpoint{Base: "http://127.0.0.1:1/v1", Paths: []string{"/chat"}, Keyless: true}
	for name, c := range map[string]struct {
		settings string
		o        live.Outgoing
		open     bool
	}{
		"an agent without a model":                  {"", live.Outgoing{}, false},
		"a check":                                   {"", live.Outgoing{Check: true, Asked: []string{"a.example.org"}, Model: model}, false},
		"a check in a home that lists hosts":        {"egress: [a.example.org]\n", live.Outgoing{Check: true}, true},
		"an agent in a home that lists hosts":       {"egress: [a.example.org]\n", live.Outgoing{}, true},
		"a dev agent in a home that lists hosts":    {"egress: [a.example.org, registries]\n", live.Outgoing{Webless: true}, false},
		"a dev agent that has a model":              {"egress: [a.example.org]\n", live.Outgoing{Webless: true, Model: model}, true},
		"an agent that a person lets reach a host":  {"", live.Outgoing{Asked: []string{"a.example.org"}}, true},
		"an agent whose model needs no key":         {"", live.Outgoing{Model: model}, true},
		"a check, whose agent has a model, in such": {"egress: [a.example.org]\n", live.Outgoing{Check: true, Model: model}, true},
	} {
		w := newWays(t, c.settings)
		way := w.open(t, c.o)
		if (way.Socket != "") != c.open {
			t.Errorf("%s: %+v", name, way)
		}
		if !c.open {
			continue
		}
		if status, _ := ask(t, way, "GET /model/chat"); (status == 404) != (c.o.Check || c.o.Model == nil) {
			t.Errorf("%s: its model answers %d", name, status)
		}
		if status, _ := ask(t, way, "GET http://a.example.org/"); c.o.Webless && status != 403 {
			t.Errorf("%s reaches more than its model: %d", name, status)
		}
	}
}

func TestASetupReachesRegistriesAloneAndOnlyWithConsent(t *testing.T) {
	for name, c := range map[string]struct {
		settings string
		o        live.Outgoing
		open     bool
	}{
		"the repository's": {"egress: [a.example.org]\n", live.Outgoing{Setup: true, Asked: []string{"b.example.org"}}, false},
		"the repository's, in a home that lets registries": {"egress: [registries]\n", live.Outgoing{Setup: true}, true},
		"the repository's, of a person who lets them":      {"egress: [a.example.org]\n", live.Outgoing{Setup: true, Asked: []string{"registries", "a.example.org"}}, true},
		"the person's own": {"", live.Outgoing{Setup: true, Fetch: true}, true},
	} {
		w := newWays(t, c.settings)
		way := w.open(t, c.o)
		if (way.Socket != "") != c.open || way.Registries != c.open {
			t.Errorf("%s: %+v", name, way)
		}
		if !c.open {
			continue
		}
		if status, _ := ask(t, way, "GET http://a.example.org/"); status != 403 {
			t.Errorf("%s: another host answers %d", name, status)
		}
	}
}

func TestAModelWithoutItsKeyIsNotAskedAndWhatCannotBeMeantIsRefused(t *testing.T) {
	w := newWays(t, "")
	for name, o := range map[string]live.Outgoing{
		"no key":        {Agent: "codex", Model: &agent.Endpoint{Base: "https://model.example.org", Header: "x-key", Paths: []string{"/a"}}},
		"no URL":        {Agent: "codex", Key: secret.Hold("k-1234567890"), Model: &agent.Endpoint{Base: "::", Header: "x-key", Paths: []string{"/a"}}},
		"a line break":  {Agent: "codex", Key: secret.Hold("k-123\r\n4567890"), Model: &agent.Endpoint{Base: "https://model.example.org", Header: "x-key", Paths: []string{"/a"}}},
		"an address":    {Asked: []string{"127.0.0.1"}},
		"a whole world": {Asked: []string{"*"}},
	} {
		way, err := w.Open(t.Context(), o)
		if kind := problem.KindOf(err); kind != problem.Unavailable && kind != problem.Usage || problem.Of(err).Next == "" || strings.Contains(err.Error(), "4567890") {
			t.Errorf("%s: %v", name, err)
			way.Close()
		}
	}
	if left, err := os.ReadDir(w.folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRegistriesAreASetAndWhatIsLookedIntoIsTrustedInside(t *testing.T) {
	w := newWays(t, "egress: [registries, registries, {host: a.example.org, methods: [GET]}]\n")
	way, again := w.open(t, live.Outgoing{Asked: []string{config.Registries}}), w.open(t, live.Outgoing{})
	if !way.Registries || way.Bundle == "" || way.Bundle != again.Bundle || way.Socket == again.Socket {
		t.Errorf("%+v, %+v", way, again)
	}
	text, err := os.ReadFile(way.Bundle)
	if err != nil || !strings.Contains(string(text), "BEGIN CERTIFICATE") {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(way.Bundle); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("another uid cannot read it inside: %v, %v", info, err)
	}
	for _, line := range []string{"CONNECT pypi.org:443", "CONNECT proxy.golang.org:443"} {
		if status, body := ask(t, way, line); status != 200 {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
	way.Close()
	again.Close()
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(w.folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestWhatADeadDaemonLeftOfItsWaysOutGoes(t *testing.T) {
	w := newWays(t, "")
	for _, name := range []string{storage.WayPrefix + "1", storage.BundlePrefix + "77", "daemon.sock"} {
		writeFile(t, filepath.Join(w.folder, name), nil, 0o600)
	}
	if err := storage.Begin(t.Context(), disk.Ops{}, t.TempDir(), w.network); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(w.folder); err != nil || len(left) != 1 || left[0].Name() != "daemon.sock" {
		t.Errorf("%v, %v", left, err)
	}
}

var _ live.Network = (*network)(nil)
