package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/drive/live"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest/modeltest"
	"sallyport/internal/port/egress"
	"sallyport/internal/rule/secret"
)

// counted is what a way out told of its model.
type counted struct {
	mu     sync.Mutex
	events []string
	used   []egress.Usage
	refuse error
}

func (c *counted) note(event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
}

// take returns what was told since the last time.
func (c *counted) take() (events string, used []egress.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events, used = strings.Join(c.events, " "), c.used
	c.events, c.used = nil, nil
	return events, used
}

func (c *counted) admit(context.Context) (func(), error) {
	c.note("admit")
	if c.refuse != nil {
		return nil, c.refuse
	}
	return func() { c.note("over") }, nil
}

func (c *counted) usedBy(u egress.Usage) {
	c.note("used")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = append(c.used, u)
}

// TestUsageIsWhatTheModelSaysOnEveryWire: whatever an agent claims, in a stream or not; a request is over when it is counted, and one that
// is refused goes nowhere.
func TestUsageIsWhatTheModelSaysOnEveryWire(t *testing.T) {
	model := modeltest.Start(t)
	model.TakeAll()
	w := newWays(t, "")
	w.outside.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(model.URL, "http://"))
	}
	for _, test := range []struct {
		wire   agent.Wire
		path   string
		body   string
		stream string // path or body of the same as a stream
	}{
		{agent.Responses, "/responses", `{"model":"test-model","input":"hi","usage":{"input_tokens":1}}`, `{"model":"test-model","input":"hi","stream":true}`},
		{agent.Chat, "/chat/completions", `{"model":"test-model","messages":[{"role":"user","content":"hi"}]}`, `{"model":"test-model","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{agent.Messages, "/v1/messages", `{"model":"test-model","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, `{"model":"test-model","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"stream":true}`},
		{agent.Gemini, "/v1beta/models/test-model:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, "/v1beta/models/test-model:streamGenerateContent?alt=sse"},
	} {
		told := &counted{}
		way := w.open(t, live.Outgoing{
			Model: &agent.Endpoint{Wire: test.wire, Base: "http://model.example.org", Header: "x-key", Paths: []string{"/responses", "/chat", "/v1", "/v1beta"}, Keyless: true},
			Key:   secret.Hold("k"), Admit: told.admit, Used: told.usedBy,
		})
		for n, stream := range []bool{false, true} {
			path, body := test.path, test.body
			if stream && strings.HasPrefix(test.stream, "/") {
				path = test.stream
			} else if stream {
				body = test.stream
			}
			want := modeltest.Usage{Input: int64(100 + n), Cached: int64(40 + n), Output: int64(7 + n)}
			model.Converse("", modeltest.Turn{Text: "hello", Usage: want})
			if status, answer := post(t, way, path, body); status != http.StatusOK || !strings.Contains(answer, "llo") {
				t.Errorf("%s, stream %t: %d %.300s", test.wire, stream, status, answer)
			}
			events, used := told.take()
			if events != "admit used over" || len(used) != 1 || used[0].Unknown || used[0].Model != "test-model" ||
				(modeltest.Usage{Input: used[0].Input, Cached: used[0].Cached, Output: used[0].Output}) != want {
				t.Errorf("%s, stream %t: %s: %+v, want %+v", test.wire, stream, events, used, want)
			}
		}
		before := len(model.Requests())
		told.refuse = errors.New("the budget is used up: x")
		if status, answer := post(t, way, test.path, test.body); status != http.StatusTooManyRequests || !strings.Contains(answer, "the budget is used up: x") {
			t.Errorf("%s: %d %q", test.wire, status, answer)
		}
		if events, used := told.take(); events != "admit" || len(used) != 0 || len(model.Requests()) != before {
			t.Errorf("%s: %s: %+v", test.wire, events, used)
		}
		way.Close()
	}
}

// post asks a way's model and returns the answer's status and body, once the door is done with it.
func post(t *testing.T, way live.Way, path, body string) (int, string) {
	t.Helper()
	conn, err := net.Dial("unix", way.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "POST /model%s HTTP/1.1\r\nHost: 127.0.0.1:3128\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection ends with %v", err)
	}
	return resp.StatusCode, string(answer)
}
