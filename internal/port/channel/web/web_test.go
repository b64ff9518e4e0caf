package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/channel"
	"sallyport/internal/port/channel/web"
)

func TestNoErrorShowsAURL(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	for _, base := range []string{server.URL, "http://127.0.0.1:1", "http://%zz", "http://127.0.0.1:1/\x7f"} {
		_, err := web.Ask(t.Context(), http.MethodPost, base+"/botSECRET/getMe", nil, map[string]int{"a": 1})
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestATokenDoesNotFollowARedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer server.Close()
	if a, err := web.Ask(t.Context(), http.MethodGet, server.URL, http.Header{"Authorization": {"Bot x"}}, nil); err != nil || a.Status != http.StatusFound {
		t.Errorf("%d, %v", a.Status, err)
	}
}

func TestAnAnswerWithoutEndIsNotRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for part := make([]byte, 1<<20); ; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if _, err := web.Ask(t.Context(), http.MethodGet, server.URL, nil, nil); err == nil {
		t.Error("it was read")
	}
}

func TestWhereAnAPIIsIsChecked(t *testing.T) {
	for setting, want := range map[string]string{
		"https://api.example": "https://api.example", "https://api.example/x/": "https://api.example/x", "http://127.0.0.1:8081": "http://127.0.0.1:8081",
		"http://[::1]:1": "http://[::1]:1", "http://localhost": "http://localhost",
		"http://api.example": "", "ftp://api.example": "", "api.example": "", "": "", "https://a:b@c": "", "https://c?x=1": "", "https://c#x": "", "https://": "",
	} {
		got, err := web.API([]channel.Setting{{Name: "api"}}, map[string]string{"api": setting})
		if got != want || (err != nil) != (want == "") || err != nil && problem.KindOf(err) != problem.Usage {
			t.Errorf("%q: %q, %v", setting, got, err)
		}
	}
}

func TestALimitIsAtLeastASecondAndAtMostADay(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{0: time.Second, -5: time.Second, 90: 90 * time.Second, 0.3: time.Second, 1e300: 24 * time.Hour} {
		if wait := time.Until(web.Later(seconds, false).Until); wait > want || wait < want-time.Minute/2 {
			t.Errorf("%v is %s", seconds, wait)
		}
	}
	if s := web.Seconds(http.Header{"Retry-After": {"1.5"}}); s != 1.5 {
		t.Error(s)
	}
	if s := web.Seconds(http.Header{"Retry-After": {"NaN"}}); s != 0 {
		t.Error(s)
	}
}

func TestATokenIsOneWord(t *testing.T) {
	for text, good := range map[string]bool{" abc:DEF\n": true, "": false, "a b": false, "a\nb": false, "é": false} {
		if got, err := web.Token(func() (string, error) { return text, nil }); (err == nil) != good || good && got != "abc:DEF" {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if got := web.Said("no: s3cret\nagain", "s3cret"); strings.Contains(got, "s3cret") || strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
}
