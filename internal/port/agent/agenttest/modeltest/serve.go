package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"sallyport/internal/port/agent"
)

var geminiCall = regexp.MustCompile(`/models/([^/]+):(generateContent|streamGenerateContent|countTokens)$`)

// ServeHTTP answers any method and path, proxy requests too, and remembers all of them.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r := Request{At: time.Now(), Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery, Header: req.Header.Clone()}
	if req.Method == http.MethodConnect || req.URL.IsAbs() {
		r.Path = req.RequestURI
		s.record(r, said{})
		http.Error(w, "this is a model, no proxy", http.StatusForbidden)
		return
	}
	raw, err := contents(req)
	r.Body = raw
	if err != nil { // who goes away in the middle of a request has asked nothing
		http.Error(w, "cannot read the request", http.StatusBadRequest)
		return
	}
	var words said
	if r.Wire = wireOf(req); r.Wire != "" {
		if words, err = read(r.Wire, raw); err != nil {
			s.fault("%s %s: %v", req.Method, req.URL.Path, err)
			refuse(w, r.Wire, Turn{Status: http.StatusBadRequest, Message: err.Error()})
			return
		}
		if m := geminiCall.FindStringSubmatch(req.URL.Path); m != nil {
			words.model, words.stream, words.usage = m[1], m[2] == "streamGenerateContent", true
		}
		r.Model, r.Stream, r.Messages = words.model, words.stream, words.messages
		for _, t := range words.tools {
			r.Tools = append(r.Tools, t.name)
		}
	}
	turn, number, ok := s.record(r, words)
	if !ok {
		s.other(w, req)
		return
	}
	s.give(w, req, r.Wire, words, turn, number)
}

func wireOf(req *http.Request) agent.Wire {
	path := strings.TrimSuffix(req.URL.Path, "/")
	m := geminiCall.FindStringSubmatch(path)
	switch {
	case req.Method != http.MethodPost:
	case strings.HasSuffix(path, "/responses"):
		return agent.Responses
	case strings.HasSuffix(path, "/chat/completions"):
		return agent.Chat
	case strings.HasSuffix(path, "/messages"):
		return agent.Messages
	case m != nil && m[2] != "countTokens":
		return agent.Gemini
	}
	return ""
}

// give answers with a turn.
func (s *Server) give(w http.ResponseWriter, req *http.Request, wire agent.Wire, said said, turn Turn, number int) {
	if !turn.Before.wait(req.Context().Done(), s.stop) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Request-Id", fmt.Sprintf("req_test_%d", number))
	if turn.Status >= http.StatusBadRequest {
		refuse(w, wire, turn)
		return
	}
	a := answer{model: said.model, id: fmt.Sprintf("test_%d", number), think: turn.Think, text: turn.Text, end: turn.End}
	for i, c := range turn.Calls {
		made, err := c.resolve(fmt.Sprintf("call_%d_%d", number, i+1), said.tools)
		if err != nil {
			s.fault("%v", err)
			refuse(w, wire, Turn{Status: http.StatusInternalServerError, Message: err.Error()})
			return
		}
		a.calls = append(a.calls, made)
	}
	if !turn.NoUsage {
		usage := turn.Usage
		if usage == (Usage{}) {
			usage = DefaultUsage
		}
		a.usage = &usage
	}
	form := forms[wire]
	if !said.stream || !s.streams() {
		if turn.Cut {
			panic(http.ErrAbortHandler)
		}
		reply(w, http.StatusOK, form.whole(a))
		return
	}
	if wire == agent.Chat && !said.usage {
		a.usage = nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	form.stream(&stream{w: w, named: wire == agent.Responses || wire == agent.Messages, middle: func() {
		if !turn.Middle.wait(req.Context().Done(), s.stop) || turn.Cut {
			panic(http.ErrAbortHandler)
		}
	}}, a)
}

// form is how a wire writes an answer.
type form struct {
	whole  func(answer) any
	stream func(*stream, answer)
}

var forms = map[agent.Wire]form{
	agent.Responses: {responsesWhole, responsesStream},
	agent.Chat:      {chatWhole, chatStream},
	agent.Messages:  {messagesWhole, messagesStream},
	agent.Gemini:    {geminiWhole, geminiStream},
}

// stream is an answer of server-sent events.
type stream struct {
	w      http.ResponseWriter
	named  bool   // events carry their type as their name
	middle func() // stands, or breaks off
	past   bool   // the middle
}

type object = map[string]any

func (s *stream) send(event object) {
	if kind, ok := event["type"].(string); ok && s.named {
		fmt.Fprintf(s.w, "event: %s\n", kind)
	}
	raw, err := json.Marshal(event)
	if err != nil {
		panic(err) // of our own making
	}
	s.line(string(raw))
}

func (s *stream) line(data string) {
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// halves sends a text in two pieces; between the first two pieces of a stream is its middle.
func (s *stream) halves(text string, send func(string)) {
	at := len(text) / 2
	for at > 0 && at < len(text) && text[at]&0xC0 == 0x80 {
		at++ // a character is not cut
	}
	if at > 0 {
		send(text[:at])
	}
	s.mid()
	send(text[at:])
}

func (s *stream) mid() {
	if !s.past {
		s.past = true
		s.middle()
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that went away is its own
}
