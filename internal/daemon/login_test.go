package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/drive/live"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/secret"
)

// vendor stands in for the endpoints of codex's login: the one that renews it, and the one of its model.
type vendor struct {
	mu      sync.Mutex
	good    string // the token that its model takes
	renewal string // and the one for renewals
	heard   []string
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	v.heard = append(v.heard, r.Method+" "+r.Host+r.URL.Path)
	switch {
	case r.Host == "auth.openai.com":
		var asked map[string]string
		_ = json.Unmarshal(raw, &asked)
		if asked["refresh_token"] != v.renewal {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		v.renewal += "-used"
		fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q}`, v.good, v.renewal)
	case r.Header.Get("Authorization") == "Bearer "+v.good && r.Header.Get("ChatGPT-Account-ID") == "account-1":
		fmt.Fprintf(w, "served, for %s", r.Header.Get("Authorization"))
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func (v *vendor) set(good, renewal string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.good, v.renewal = good, renewal
}

// secured serves v for all names over TLS, and returns how it is reached.
func (v *vendor) secured(t *testing.T) Outside {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"auth.openai.com", "chatgpt.com"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(v)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return Outside{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		},
		Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
		},
		Roots: roots,
	}
}

func TestALoginOpensItsModelIsRenewedOutsideAndIsSeenByNobodyInside(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("CODEX_HOME", folder)
	file := filepath.Join(folder, "auth.json")
	const text = `{"tokens":{"access_token":"access-token-0","refresh_token":"renewal-token-0","account_id":"account-1"}}`
	writeFile(t, file, []byte(text), 0o600)
	v := &vendor{good: "access-token-0", renewal: "renewal-token-0"}
	w := newWays(t, "")
	held := &secret.Held{}
	w.outside = v.secured(t)
	known, err := agent.Lookup("codex")
	if err != nil {
		t.Fatal(err)
	}
	begin := func() live.Way { // as a daemon that starts
		l, err := newLogins(Options{Outside: w.outside}, held, slog.New(slog.DiscardHandler)).Of("codex")
		if err != nil {
			t.Fatal(err)
		}
		return w.open(t, live.Outgoing{Agent: "codex", Model: known.Endpoint(agent.Settings{Login: true}), Login: l})
	}
	way := begin()
	want := func(line string, status int, says string) {
		t.Helper()
		got, body := ask(t, way, line)
		if got != status || !strings.Contains(body, says) || strings.Contains(body, "-token-") {
			t.Errorf("%s: %d %q", line, got, body)
		}
	}
	want("GET /model/models?client_version=1", 200, "served, for Bearer *****")
	want("GET /model/accounts/check", 403, "is refused")
	want("POST /model/models", 403, "is refused")

	v.set("access-token-1", "renewal-token-0")
	want("GET /model/models", 503, "its login has just been renewed; ask again")
	want("GET /model/models", 200, "served")
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "renewal-token-0-used") {
		t.Errorf("%s, %v", raw, err)
	}
	v.set("none", "none")
	way = begin()
	want("GET /model/models", 401, "the login of codex has ended: auth.openai.com renews it no more (status 401); log in again with codex login")

	for _, one := range v.heard {
		if !strings.HasPrefix(one, "GET chatgpt.com/backend-api/codex/models") && one != "POST auth.openai.com/oauth/token" {
			t.Errorf("it was asked %s", one)
		}
	}
	clean, err := secret.New(secret.Config{Held: held})
	if err != nil {
		t.Fatal(err)
	}
	if shown := clean.Redact("access-token-0 and " + "renewal-token-0"); strings.Contains(shown, "-token-0") {
		t.Errorf("shown: %s", shown)
	}
	if told := fmt.Sprintf("%+v", w.decided); strings.Contains(told, "-token-") {
		t.Errorf("told: %s", told)
	}
}
