package modeltest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/port/agent"
)

// Server is a model's endpoint. Its methods may be called while it serves.
type Server struct {
	// URL is http://127.0.0.1:PORT. Every wire is answered below any path: URL+"/v1/responses", URL+"/v1beta/models/m:generateContent".
	URL string

	server *http.Server
	stop   chan struct{}
	done   chan struct{} // closed once it serves no more

	mu            sync.Mutex
	conversations []*conversation // the first has no marker
	requests      []Request
	more          chan struct{} // closed and made anew with each request
	header, value string        // that every request must have
	takeAll       bool
	whole         bool
	models        []string
	faults        []string
}

type conversation struct {
	marker string
	turns  []Turn
	next   int // of turns
	given  int // of turns[next], how often
}

// Request is one that was made.
type Request struct {
	At           time.Time
	Method, Path string // Path without a query
	Query        string
	Header       http.Header
	Body         []byte
	Wire         agent.Wire // "" = it was not for a model
	Model        string
	Stream       bool
	Tools        []string // that were offered
	Messages     []Message
	Conversation string // marker
	Turn         int    // from 1; 0 = it took none
	Status       int    // of the answer; 0 = it was not for a model
}

// BodyBytesMax is the most that one request may hold.
const BodyBytesMax = 32 << 20

// Start serves script until the test ends. A script that could not be played fails the test.
func Start(t testing.TB, script ...Turn) *Server {
	t.Helper()
	s, err := New(script...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New serves script until Close.
func New(script ...Turn) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), stop: make(chan struct{}), more: make(chan struct{}), done: make(chan struct{}),
		conversations: []*conversation{{turns: script}}, models: []string{"test-model"},
	}
	s.server = &http.Server{Handler: s}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // ends with Close
	}()
	return s, nil
}

// Close ends the server; its error is what of the script could not be played.
func (s *Server) Close() error {
	close(s.stop)
	_ = s.server.Close()
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, fault := range s.faults {
		errs = append(errs, fmt.Errorf("the test's model: %s", fault))
	}
	return errors.Join(errs...)
}

// Converse gives the conversations whose person says marker a script of their own; of several the last that was given counts. Given
// again, it is a new script.
func (s *Server) Converse(marker string, script ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conversations {
		if c.marker == marker {
			c.turns, c.next, c.given = script, 0, 0
			return
		}
	}
	s.conversations = append(s.conversations, &conversation{marker: marker, turns: script})
}

// Require refuses, with 401, what does not have this header with exactly this value.
func (s *Server) Require(header, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header, s.value = header, value
}

// TakeAll lets requests without tools take turns too.
func (s *Server) TakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeAll = true
}

// NoStreams answers at once whoever asks for a stream, as endpoints do that know none.
func (s *Server) NoStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = true
}

func (s *Server) streams() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.whole
}

// Models are what lists of models name; test-model unless it is said otherwise.
func (s *Server) Models(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = names
}

// Requests returns all that were made, in the order in which they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Left is how many turns of a conversation have not been taken.
func (s *Server) Left(marker string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conversations {
		if c.marker == marker {
			return len(c.turns) - c.next
		}
	}
	return 0
}

// Await returns once n requests were made.
func (s *Server) Await(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		have, more := len(s.requests), s.more
		s.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d requests were made: %w", have, n, context.Cause(ctx))
		}
	}
}

// Carrying returns the requests that carry a text anywhere: path, query, headers or body.
func (s *Server) Carrying(text string) []Request {
	return slices.DeleteFunc(s.Requests(), func(r Request) bool {
		if strings.Contains(r.Path, text) || strings.Contains(r.Query, text) || bytes.Contains(r.Body, []byte(text)) {
			return false
		}
		for name, values := range r.Header {
			if strings.Contains(name+strings.Join(values, "\n"), text) {
				return false
			}
		}
		return true
	})
}

// Told returns what messages of a role the last request of a conversation has, joined by lines.
func (s *Server) Told(marker, role string) string {
	all := s.Requests()
	for _, r := range slices.Backward(all) {
		if r.Conversation != marker || r.Turn == 0 {
			continue
		}
		var texts []string
		for _, m := range r.Messages {
			if m.Role == role {
				texts = append(texts, m.Text)
			}
		}
		return strings.Join(texts, "\n")
	}
	return ""
}

func (s *Server) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// record keeps a request and chooses what it gets; ok = false: it took no turn.
func (s *Server) record(r Request, said said) (turn Turn, number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conversations[0]
	for _, other := range s.conversations[1:] {
		if slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role == "user" && strings.Contains(m.Text, other.marker) }) {
			c = other
		}
	}
	r.Conversation = c.marker
	if c.next < len(c.turns) && c.turns[c.next].heard(r.Body) {
		c.next, c.given = c.next+1, 0
	}
	switch {
	case r.Wire == "":
	case s.header != "" && r.Header.Get(s.header) != s.value:
		turn, ok = Turn{Status: http.StatusUnauthorized, Message: "the key is not valid"}, true
	case len(said.tools) == 0 && !s.takeAll:
		turn, ok = Turn{Text: aside(said)}, true
	case c.next >= len(c.turns):
		turn, ok = Say(Over), true
	default:
		turn, ok = c.turns[c.next], true
		r.Turn = c.next + 1
		if c.given++; c.given >= turn.Times && turn.Until == "" {
			c.next, c.given = c.next+1, 0
		}
	}
	r.Status = http.StatusOK
	if turn.Status != 0 {
		r.Status = turn.Status
	}
	s.requests = append(s.requests, r)
	close(s.more)
	s.more = make(chan struct{})
	return turn, len(s.requests), ok
}

// aside answers what agents ask beside their work.
func aside(said said) string {
	if said.asJSON {
		return `{"reasoning":"a test","next_speaker":"user","model_choice":"flash","complexity_reasoning":"a test","complexity_score":10}`
	}
	return "A title"
}

func contents(r *http.Request) ([]byte, error) {
	from := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		from = z
	}
	raw, err := io.ReadAll(io.LimitReader(from, BodyBytesMax+1))
	if err == nil && len(raw) > BodyBytesMax {
		err = fmt.Errorf("more than %d bytes", BodyBytesMax)
	}
	return raw, err
}
