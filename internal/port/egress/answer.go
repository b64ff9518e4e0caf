package egress

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// answer passes an answer back as it comes, each piece at once, and reports whether the connection can serve another request.
func (x *exchange) answer(resp *http.Response) bool {
	h := endToEnd(resp.Header)
	if x.a.Route != nil {
		h.Del("Set-Cookie") // it would be a credential of the owner's
		spell(x.a.Route.key()).without(h)
	}
	if wait := bidsWait(resp); wait > 0 && x.a.Route != nil && x.a.Route.Waits != nil {
		x.a.Route.Waits(wait)
	}
	keep := !x.a.head.last
	empty := x.a.Method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
	cut := false // its end is marked by chunks
	switch {
	case resp.ContentLength >= 0 && resp.StatusCode != http.StatusNoContent && !(empty && resp.ContentLength == 0):
		h.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	case empty:
	case x.a.head.minor == 1:
		h.Set("Transfer-Encoding", "chunked")
		cut = true
	default:
		keep = false
	}
	if !keep {
		h.Set("Connection", "close")
	}
	fmt.Fprintf(x.w, "HTTP/1.1 %d %s\r\n", resp.StatusCode, http.StatusText(resp.StatusCode))
	_ = h.Write(x.w) // Flush tells
	io.WriteString(x.w, "\r\n")
	if x.w.Flush() != nil {
		return false
	}
	x.meter.answered(resp)
	if cut {
		chunks := httputil.NewChunkedWriter(x.w)
		if !x.pass(chunks, resp.Body) {
			return false
		}
		chunks.Close()
		io.WriteString(x.w, "\r\n")
		return x.w.Flush() == nil && keep
	}
	return x.pass(x.w, resp.Body) && keep
}

// bidsWait returns for how long an answer that limits rates bids wait, a day at the most; 0 = it does not.
func bidsWait(resp *http.Response) time.Duration {
	const day = 24 * time.Hour
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	said := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(said, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, day)
	}
	at, err := http.ParseTime(said)
	if err != nil {
		return 0
	}
	return max(0, min(time.Until(at), day))
}

// pass copies a body down. The usage in a piece is told before the piece goes on, so that who has read it can
// ask nothing that it does not count for.
func (x *exchange) pass(to io.Writer, from io.Reader) bool {
	end := func() error { return nil }
	if x.a.Route != nil {
		if keys := spell(x.a.Route.key()); keys != nil {
			s := &scrubber{to: to, keys: keys}
			to, end = s, s.end
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		x.live()
		x.meter.Write(buf[:n])
		if err == io.EOF {
			x.meter.close(true)
		}
		if _, err := to.Write(buf[:n]); err != nil || x.w.Flush() != nil {
			return false
		}
		x.live()
		if err != nil {
			return err == io.EOF && end() == nil && x.w.Flush() == nil
		}
	}
}

// plain makes one short line of ASCII of what may come from an agent.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, cut(s, 200))
}

// live hears that something moves.
func (x *exchange) live() {
	x.idle.Reset(x.patience())
	if x.a.Route == nil || x.a.Route.Moved == nil {
		return
	}
	now := time.Now()
	if last := x.moved.Load(); (last == nil || now.Sub(*last) >= MovedEvery) && x.moved.CompareAndSwap(last, &now) {
		x.a.Route.Moved()
	}
}

// patience is how long nothing may move.
func (x *exchange) patience() time.Duration {
	if x.a.Route != nil && x.a.Route.Idle > 0 {
		return x.a.Route.Idle
	}
	return x.cfg.Limits.Idle
}
