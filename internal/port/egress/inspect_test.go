package egress

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
)

// inspected is a door that looks into api.example.com, and what trusts it.
func inspected(t *testing.T, h http.HandlerFunc) (*world, *x509.CertPool) {
	t.Helper()
	ca, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	inside := x509.NewCertPool()
	inside.AppendCertsFromPEM(ca.PEM())
	s, roots := secure(t, h)
	return open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com", Methods: []string{"GET"}, Paths: []string{"/v1/"}}, {Host: "example.com", Methods: []string{"POST"}, Paths: []string{"/search"}}}
		w.cfg.CA, w.cfg.Roots = ca, roots
		w.at[443] = s.Listener.Addr().String()
	}), inside
}

func TestEachRequestToAnInspectedHostIsJudged(t *testing.T) {
	w, inside := inspected(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, b)
	})
	client := w.client(inside)
	for _, y := range []struct {
		method, path, body string
		status             int
	}{{"GET", "/v1/x", "", 200}, {"POST", "/search", "words", 200}, {"POST", "/v1/x", "words", 403}, {"GET", "/search", "", 403}, {"GET", "/v1x", "", 403}, {"DELETE", "/v1/x", "", 403}, {"GET", "/v1/", "", 200}} {
		req, _ := http.NewRequest(y.method, "https://example.com"+y.path+"?q=1", strings.NewReader(y.body))
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", y.method, y.path, err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		want := fmt.Sprintf("%s %s %s", y.method, y.path, y.body)
		if resp.StatusCode != y.status || y.status == 200 && string(body) != want || resp.ProtoMajor != 1 {
			t.Errorf("%s %s: %d %s", y.method, y.path, resp.StatusCode, body)
		}
	}
	told := w.decisions()
	if len(told) != 7 || told[0].Path != "/v1/x" || told[0].Host != "example.com" || told[0].Port != 443 || told[2].Verdict != Refused {
		t.Errorf("told %+v", told)
	}
}

func TestAnInspectedHostMustBeWhoItSaysItIs(t *testing.T) {
	w, inside := inspected(t, func(w http.ResponseWriter, r *http.Request) { t.Error("it was asked") })
	w.stop()
	cfg := w.cfg
	cfg.Roots = x509.NewCertPool() // nobody vouches for the host
	w = open(t, func(o *world) { cfg.Dial, cfg.Decided = o.dial, o.cfg.Decided; o.cfg, o.at = cfg, w.at })
	resp, err := w.client(inside).Get("https://example.com/v1/x")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "its certificate is not valid") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestAProgramThatDoesNotTrustTheSandboxesAuthorityIsToldOf(t *testing.T) {
	w, _ := inspected(t, func(w http.ResponseWriter, r *http.Request) { t.Error("it was asked") })
	if resp, err := w.client(x509.NewCertPool()).Get("https://example.com/v1/x"); err == nil {
		resp.Body.Close()
		t.Error("it was trusted")
	}
	w.stop()
	if told := w.decisions(); len(told) != 1 || told[0].Verdict != Failed || !strings.Contains(told[0].Why, "does not trust") {
		t.Errorf("told %+v", told)
	}
}

func TestAnAuthorityVouchesForOneHostAtATime(t *testing.T) {
	ca, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.leaf("example.com")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.PEM())
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.com"}); err != nil {
		t.Error(err)
	}
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "a.example.com"}); err == nil {
		t.Error("it vouches for more than its host")
	}
	if again, _ := ca.leaf("example.com"); again != leaf {
		t.Error("a leaf is made anew each time")
	}
	other, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := other.leaf("example.com"); l.Leaf.CheckSignatureFrom(ca.cert) == nil {
		t.Error("two authorities have one key")
	}
	for i := range leavesMax + 1 {
		ca.leaves[fmt.Sprint(i)] = leaf
	}
	if _, err := ca.leaf("new.example.com"); err != nil || len(ca.leaves) > leavesMax {
		t.Errorf("%d leaves, %v", len(ca.leaves), err)
	}
}

func TestABundleHasTheMachinesAuthoritiesAndOurs(t *testing.T) {
	ca, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	theirs, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	disktest.Put(t, file, theirs.PEM(), 0o600)
	t.Setenv("SSL_CERT_FILE", file)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.Bundle()) {
		t.Fatal("no certificate in it")
	}
	for _, a := range []*Authority{ca, theirs} {
		l, _ := a.leaf("example.com")
		if _, err := l.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "example.com", CurrentTime: time.Now()}); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("SSL_CERT_FILE", file+".none")
	without := ca.Bundle()
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	if got := ca.Bundle(); !bytes.Equal(got, without) {
		t.Errorf("an empty file is taken for authorities: %d bytes, %d without it", len(got), len(without))
	}
}

func TestATunnelThatIsRefusedSaysSoInTheWordsOfTLS(t *testing.T) {
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com"}}
		w.at[443] = answering(t, "reached")
	})
	client := w.client(nil)
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{ServerName: "intern.example", InsecureSkipVerify: true}
	_, err := client.Get("https://example.com/")
	if err == nil || !strings.Contains(err.Error(), "access denied") {
		t.Errorf("the client says %v", err)
	}
}
