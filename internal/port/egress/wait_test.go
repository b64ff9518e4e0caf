package egress

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestWhatALimitBidsWaitIsTold holds that the host hears of Retry-After by itself, within bounds, and only from an answer that limits rates.
func TestWhatALimitBidsWaitIsTold(t *testing.T) {
	for _, test := range []struct {
		status     int
		said       string
		least, max time.Duration
	}{
		{http.StatusTooManyRequests, "2400", 40 * time.Minute, 40 * time.Minute},
		{http.StatusServiceUnavailable, "1", time.Second, time.Second},
		{http.StatusTooManyRequests, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 50 * time.Minute, time.Hour},
		{http.StatusTooManyRequests, "4000000000", 24 * time.Hour, 24 * time.Hour},
		{http.StatusTooManyRequests, "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		{http.StatusTooManyRequests, "-5", 0, 0},
		{http.StatusTooManyRequests, "", 0, 0},
		{http.StatusOK, "2400", 0, 0},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", test.said)
			w.WriteHeader(test.status)
		}))
		told := make(chan time.Duration, 1)
		w := open(t, func(w *world) {
			route := modelRoute(t, s.URL)
			route.Waits = func(d time.Duration) { told <- d }
			w.cfg.Routes = []Route{route}
		})
		resp, _ := w.send("POST /model/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		s.Close()
		var heard time.Duration
		bids := len(told) > 0
		if bids {
			heard = <-told
		}
		if resp.StatusCode != test.status || bids != (test.max > 0) || heard < test.least || heard > test.max {
			t.Errorf("%d with %q: the agent has %d, and the host is told %s", test.status, test.said, resp.StatusCode, heard)
		}
	}
}
