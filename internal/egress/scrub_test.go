package egress

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/secret"
)

func TestAKeyIsNotPassedOnInWhateverPieces(t *testing.T) {
	const key = "abcabcabd"
	stars := strings.Repeat("*", len(key))
	for text, want := range map[string]string{
		"":                             "",
		"nothing of it, abcabca":       "nothing of it, abcabca",
		"x" + key + "y":                "x" + stars + "y",
		key + key:                      stars + stars,
		"abc" + key:                    "abc" + stars, // it begins within what could be its beginning
		"abcab" + key + "abcabcab":     "abcab" + stars + "abcabcab",
		"Authorization: Bearer " + key: "Authorization: Bearer " + stars,
	} {
		for size := 1; size <= len(text)+1; size++ {
			var out bytes.Buffer
			s := &scrubber{to: &out, key: []byte(key)}
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				if wrote, err := s.Write(rest[:n:n]); wrote != n || err != nil {
					t.Fatalf("%d, %v", wrote, err)
				}
				rest = rest[n:]
			}
			if err := s.end(); err != nil || out.String() != want {
				t.Errorf("%q in pieces of %d became %q, %v", text, size, out.String(), err)
			}
		}
	}
}

func TestAnEndpointThatTellsWhatItWasSentTellsNoKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("Authorization"))
		w.Header().Set("X-Other", "stays")
		io.WriteString(w, "you sent "+r.Header.Get("Authorization")[:12])
		w.(http.Flusher).Flush()
		io.WriteString(w, r.Header.Get("Authorization")[12:]+" to me")
	}))
	defer s.Close()
	w := open(t, func(w *world) { w.cfg.Routes = []Route{modelRoute(t, s.URL)} })
	resp, body := w.send(get("/model/models", Inside))
	if want := "you sent Bearer " + strings.Repeat("*", len(theKey)) + " to me"; body != want || resp.Header.Get("X-Seen") != "" || resp.Header.Get("X-Other") != "stays" {
		t.Errorf("%q %v", body, resp.Header)
	}
	if (Route{Value: secret.Hold("Bearer 1234567")}).key() != nil {
		t.Error("a word of seven letters is looked for in every text")
	}
}

// A model that thinks says nothing for long; who goes away then has used what it thought.
func TestAnAnswerThatDoesNotSayItsUsageCountsTheTimeThatItsModelHad(t *testing.T) {
	for name, test := range map[string]struct {
		after  time.Duration
		status int
		want   int64 // 0: it is not counted
	}{
		"at once":               {0, 200, 10},
		"late":                  {30 * time.Second, 200, 3000},
		"refused":               {30 * time.Second, 400, 0},
		"failed at once":        {time.Second, 502, 0},
		"outlasted a gateway":   {30 * time.Second, 504, 3000},
		"the model is too busy": {30 * time.Second, 429, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []Usage
			m := newMeter(Answer{Route: &Route{Wire: wireChat, Used: func(u Usage) { told = append(told, u) }}, Method: "POST", Path: "/chat/completions"})
			m.asked([]byte(`{"model":"m"}`))
			if test.status != 200 {
				time.Sleep(test.after)
			}
			m.answered(&http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {"text/event-stream"}}})
			m.Write([]byte(`data: {"choices":[{"delta":{"content":"` + strings.Repeat("a", 40) + `"}}]}` + "\n\n"))
			if test.status == 200 {
				time.Sleep(test.after)
			}
			m.close(true)
			if test.want == 0 && len(told) == 0 {
				return
			}
			if len(told) != 1 || told[0].Output != test.want || !told[0].Unknown {
				t.Errorf("%s: %+v", name, told)
			}
		})
	}
}
