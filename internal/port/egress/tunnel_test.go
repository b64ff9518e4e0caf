package egress

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func clientTLS(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }

// secure is a TLS server whose certificate is for example.com and what is below it.
func secure(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of programs that do not trust it, as they should
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

func TestATunnelCarriesTLSToExactlyItsHost(t *testing.T) {
	s, roots := secure(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello "+r.Host) })
	w := open(t, func(w *world) {
		w.cfg.Rules = []Rule{{Host: "example.com"}}
		w.at[443] = s.Listener.Addr().String()
	})
	resp, err := w.client(roots).Get("https://example.com/page")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "hello example.com" || resp.TLS == nil {
		t.Errorf("got %q", body)
	}
	if _, err = w.client(roots).Get("https://other.example.com/"); err == nil || !strings.Contains(err.Error(), "no egress rule of this sandbox names it") {
		t.Errorf("a host without a rule: %v", err)
	}
}
