package egress

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func clientTLS(roots *x509.CertPool) *tls.Config { return &tls.Config{RootCAs: roots} }

// secure is a TLS server whose certificate is for example.com and what is below it.
func secure(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(h)
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
	_, err = w.client(roots).Get("https://other.example.com/")
	if err == nil {
		t.Error("a host without a rule was reached")
	} else {
		t.Log(err)
	}
	t.Log(w.decisions())
}

func TestARouteAddsTheCredential(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery+" "+r.Header.Get("Authorization"))
	}))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL+"/v1")} })
	resp, err := w.direct().Get("http://" + Inside + "/model/models?key=mine&limit=2")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "GET /v1/models?limit=2 Bearer "+theKey {
		t.Errorf("got %q", body)
	}
}
