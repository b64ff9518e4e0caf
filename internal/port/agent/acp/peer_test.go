package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"sallyport/internal/port/agent"
)

// peer is an agent that a test plays itself, without a process.
type peer struct {
	t     *testing.T
	heard chan message
	lines chan []byte
	done  chan struct{}
	once  sync.Once
	deaf  bool // it does not read
	show  *record
}

var _ program = (*peer)(nil)

func (p *peer) Line() ([]byte, error) {
	select {
	case line := <-p.lines:
		return line, nil
	default:
	}
	select {
	case line := <-p.lines:
		return line, nil
	case <-p.done:
		return nil, io.EOF
	}
}
func (p *peer) Done() <-chan struct{} { return p.done }
func (p *peer) Fate() string          { return "it ended by itself" }
func (p *peer) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Write is what the agent is told.
func (p *peer) Write(line []byte) (int, error) {
	if p.deaf {
		<-p.done
		return 0, io.ErrClosedPipe
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil || bytes.Count(line, []byte("\n")) != 1 {
		p.t.Errorf("the agent was told %q: %v", line, err)
	}
	p.heard <- m
	return len(line), nil
}

// play returns a conversation with an agent of this name that a test plays.
func play(t *testing.T, o agent.Order) (*talk, *peer) {
	p := &peer{t: t, heard: make(chan message, 4096), lines: make(chan []byte, 4096), done: make(chan struct{}), show: &record{}}
	talk := newTalk(newConn(p, p), place{Order: o, dir: "/srv", home: t.TempDir()}, dialectOf(o.Agent), p.show)
	go talk.conn.run()
	t.Cleanup(func() { p.Close(); <-talk.conn.gone })
	return talk, p
}

// says writes a line as the agent.
func (p *peer) says(format string, args ...any) { p.lines <- fmt.Appendf(nil, format, args...) }

// update tells one of a session named s.
func (p *peer) update(text string) {
	p.says(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`, text)
}

// hears waits for what the agent is told next, which is to be of this method; "" is an answer.
func (p *peer) hears(method string) message {
	p.t.Helper()
	m := <-p.heard
	if m.Method != method {
		p.t.Fatalf("the agent was told %s %s%s, not %s", m.Method, m.Params, m.Result, method)
	}
	return m
}

// answers what it was asked last.
func (p *peer) answers(m message, result string) {
	p.says(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (p *peer) fails(m message, fault string) {
	p.says(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, fault)
}

// ready brings a conversation to where it takes words.
func ready(t *testing.T, o agent.Order) (*talk, *peer) {
	t.Helper()
	talk, p := play(t, o)
	opened := make(chan error, 1)
	go func() { opened <- talk.open(context.Background(), "") }()
	p.answers(p.hears("initialize"), `{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"_meta":{"steering":{"supported":true}}}`)
	p.answers(p.hears("session/new"), `{"sessionId":"s"}`)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	return talk, p
}

type over struct {
	says string
	err  error
}

// prompted begins a turn and returns the agent's side of it.
func prompted(ctx context.Context, talk *talk, p *peer, text string) (message, <-chan over) {
	p.t.Helper()
	done := make(chan over, 1)
	go func() {
		says, err := talk.Prompt(ctx, text)
		done <- over{says, err}
	}()
	m := p.hears("session/prompt")
	if !strings.Contains(string(m.Params), text) {
		p.t.Fatalf("it was asked %s", m.Params)
	}
	return m, done
}

// record is what a person was shown, a line for each time.
type record struct {
	mu    sync.Mutex
	text  strings.Builder
	began []agent.Tool
	ended []string // id, and whether it failed
}

var _ agent.Show = (*record)(nil)

func (r *record) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.WriteString(text + "\n")
}

func (r *record) Say(text string)         { r.add(text) }
func (r *record) Think(text string)       { r.add("~ " + text) }
func (r *record) Tool(kind, title string) { r.add("[" + kind + "] " + title) }
func (r *record) Began(t agent.Tool) {
	r.Tool(t.Kind, t.Title)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began = append(r.began, t)
}
func (r *record) Ended(id string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, fmt.Sprintf("%s %t", id, failed))
}
func (r *record) Note(text string) { r.add("note: " + text) }
func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// settled returns once the agent's words so far have been taken.
func (p *peer) settled() {
	p.t.Helper()
	p.says(`{"jsonrpc":"2.0","id":"settled","method":"no/such"}`)
	p.hears("")
}
