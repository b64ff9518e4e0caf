package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How a question is asked.
const (
	triesMax   = 6                // of one question
	waitFirst  = time.Second      // before the second try; it doubles
	waitMax    = 30 * time.Second // unless the endpoint asks for more
	askedMax   = 2 * time.Minute  // the longest that an endpoint may ask to wait
	silentMax  = 5 * time.Minute  // without a byte of an answer
	errorBytes = 64 << 10         // of an error's body
)

// sleep waits between two tries.
var sleep = time.After

// client asks one endpoint.
type client struct {
	wire wire
	base string
	http *http.Client
	note func(string) // for a person: that it is asked again
}

// newClient asks base directly: it is on this machine, whatever a proxy's variables say.
func newClient(w wire, base string, note func(string)) *client {
	return &client{wire: w, base: strings.TrimRight(base, "/"), note: note, http: &http.Client{
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			ResponseHeaderTimeout: silentMax, MaxIdleConns: 2, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ask asks until there is an answer, or until asking makes no more sense: at most triesMax times.
func (c *client) ask(ctx context.Context, q question, l listener) (reply, error) {
	wait := waitFirst
	for try := 1; ; try++ {
		r, pause, err := c.once(ctx, q, l)
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			return reply{}, context.Cause(ctx)
		}
		var no refusal
		if errors.As(err, &no) && !no.passing() || errors.Is(err, errLong) {
			return reply{}, err
		}
		if pause > askedMax {
			return reply{}, fmt.Errorf("%w; its endpoint asks to wait %s, which is too long", err, pause.Round(time.Second))
		}
		if try >= triesMax {
			return reply{}, fmt.Errorf("%w (the agent asked %d times)", err, try)
		}
		if pause == 0 {
			pause = wait/2 + rand.N(wait) //nolint:gosec // no secret: many that were refused together do not come back together
			wait = min(2*wait, waitMax)
		}
		c.note(fmt.Sprintf("%s; the agent asks again in %s", err, pause.Round(time.Second/10)))
		if err := rest(ctx, pause); err != nil {
			return reply{}, err
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-sleep(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// once asks once; pause is what the endpoint asks to wait, 0 if it does not say.
func (c *client) once(ctx context.Context, q question, l listener) (r reply, pause time.Duration, err error) {
	raw, err := json.Marshal(c.wire.body(q))
	if err != nil {
		return reply{}, 0, fmt.Errorf("encode the request to the model: %w", err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+c.wire.ask(), bytes.NewReader(raw))
	if err != nil {
		return reply{}, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "sallyport")
	c.wire.header(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, 0, fmt.Errorf("the model cannot be reached: %w", bare(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return reply{}, retryAfter(resp.Header), failed(resp)
	}
	silence := newPatience(silentMax, func() { stop(errCut) })
	defer silence.Stop()
	body := watched{resp.Body, silence}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "application/json") { // it knows no streams
		raw, err := io.ReadAll(io.LimitReader(body, answerBytesMax+1))
		if err != nil {
			return reply{}, 0, errCut
		}
		if len(raw) > answerBytesMax {
			return reply{}, 0, errLong
		}
		r, err = c.wire.whole(raw)
		if err == nil && r.text != "" {
			l.say(r.text)
		}
		return r, 0, err
	}
	r, err = c.wire.stream(events(body), l)
	return r, 0, err
}

// watched puts off the end of patience with every byte.
type watched struct {
	io.Reader
	silence *patience
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.silence.Renew()
	}
	return n, err
}

// bare is an error of net/http without the URL, which says nothing to a person.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return errors.Unwrap(err)
}

func failed(resp *http.Response) refusal {
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, errorBytes)) // what came of it
	r := refused(resp.StatusCode, raw)
	switch resp.Header.Get("X-Should-Retry") { // both vendors know better than a status what may pass
	case "true":
		yes := true
		r.retry = &yes
	case "false":
		no := false
		r.retry = &no
	}
	return r
}

// retryAfter reads how long to wait; 0 = it is not said, or not to be understood.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// choose is the model that is asked if nobody names one: the wire's usual, or the first that the endpoint has if it does not have that.
func (c *client) choose(ctx context.Context) string {
	usual := c.wire.usual()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+c.wire.models(), nil)
	if err != nil {
		return usual
	}
	c.wire.header(req.Header)
	resp, err := c.http.Do(req)
	if err != nil {
		return usual // the question itself will say what is wrong
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, eventBytesMax)).Decode(&list) != nil {
		return usual
	}
	first := ""
	for _, m := range list.Data {
		if m.ID == usual {
			return usual
		}
		if first == "" && len(m.ID) <= 200 {
			first = m.ID
		}
	}
	if first == "" {
		return usual
	}
	return first
}
