package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"sallyport/internal/port/agent/child"
)

const (
	strayMax  = 1000            // lines in a row that are no message, before what an agent says makes no sense
	queueMax  = 256             // messages that wait for an agent that does not read
	idMax     = 256             // bytes of a request's id
	endingMax = 2 * time.Second // until a program whose output has ended is gone
)

// program is what speaks at the other end: a child.Child.
type program interface {
	Line() ([]byte, error)
	Done() <-chan struct{}
	Fate() string
	Close() error
}

// message is one of JSON-RPC 2.0: a request has Method and ID, a notification Method, an answer ID.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *fault          `json:"error"`
}

var errNoMessage = errors.New("this line of the agent's output is no ACP message")

// read takes a message out of a line. Errors: errNoMessage.
func read(line []byte) (m message, err error) {
	if line = bytes.TrimSpace(line); len(line) == 0 || line[0] != '{' {
		return m, errNoMessage // many an agent prints a line of text now and then
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("%w: %w", errNoMessage, err)
	}
	if bytes.Equal(m.ID, []byte("null")) {
		m.ID = nil
	}
	if len(m.ID) > idMax || len(m.ID) > 0 && (m.ID[0] == '{' || m.ID[0] == '[') || m.Method == "" && m.ID == nil {
		return message{}, errNoMessage
	}
	return m, nil
}

// answer is what came back for a request.
type answer struct {
	result json.RawMessage
	fault  *fault
}

// conn speaks with one agent. What it says is taken in order by one goroutine, so that an answer comes after
// all that was said before it.
type conn struct {
	prog program
	in   io.Writer
	hear func(method string, params json.RawMessage)                     // a notification
	ask  func(method string, params json.RawMessage) (any, *fault, bool) // a request; false: there is no such method

	out  chan []byte
	gone chan struct{} // closed once nothing more comes
	why  error         // only after gone

	mu      sync.Mutex
	next    int
	waiting map[int]chan answer
	ended   sync.Once
}

func newConn(prog program, in io.Writer) *conn {
	return &conn{prog: prog, in: in, out: make(chan []byte, queueMax), gone: make(chan struct{}), waiting: map[int]chan answer{}}
}

// run reads and writes until the program ends or says what makes no sense.
func (c *conn) run() {
	go c.write()
	for strays := 0; strays < strayMax; {
		line, err := c.prog.Line()
		if err != nil {
			c.end(err)
			return
		}
		m, err := read(line)
		if err != nil {
			strays++
			continue
		}
		strays = 0
		c.take(m)
	}
	c.end(errors.New("the agent's output is not ACP"))
}

// take is one message.
func (c *conn) take(m message) {
	switch {
	case m.Method == "":
		c.answered(m)
	case m.ID == nil:
		c.hear(m.Method, m.Params)
	default:
		result, f, known := c.ask(m.Method, m.Params)
		if !known {
			f = &fault{Code: noMethod, Message: "Method not found"}
		}
		if f != nil {
			c.post(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": f})
			return
		}
		c.post(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	}
}

// answered gives an answer to whoever waits for it; what nobody waits for is left out.
func (c *conn) answered(m message) {
	id, err := strconv.Atoi(string(m.ID))
	if err != nil {
		return
	}
	c.mu.Lock()
	ch := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if ch != nil {
		ch <- answer{m.Result, m.Error}
	}
}

// write writes what was posted until the connection ends. An agent that does not read ends with its program.
func (c *conn) write() {
	for {
		select {
		case line := <-c.out:
			if _, err := c.in.Write(line); err != nil {
				return // its output ends too, and says why
			}
		case <-c.gone:
			return
		}
	}
}

// post queues a message.
func (c *conn) post(m any) {
	line, err := json.Marshal(m)
	if err != nil {
		c.end(fmt.Errorf("encode a message: %w", err))
		return
	}
	select {
	case c.out <- append(line, '\n'):
	default:
		c.end(errors.New("the agent does not read what it is told"))
	}
}

// note is a notification.
func (c *conn) note(method string, params any) {
	c.post(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// send asks; the answer comes over the channel, unless the connection ends before.
func (c *conn) send(method string, params any) (id int, ch <-chan answer) {
	got := make(chan answer, 1)
	c.mu.Lock()
	c.next++
	id = c.next
	c.waiting[id] = got
	c.mu.Unlock()
	c.post(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, got
}

// forget leaves an answer that may still come.
func (c *conn) forget(id int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// call asks and waits. Errors: a *fault that the agent answered, that it is gone, ctx's cause.
func (c *conn) call(ctx context.Context, method string, params, result any) error {
	id, ch := c.send(method, params)
	select {
	case a := <-ch:
		return a.into(result)
	case <-c.gone:
		select {
		case a := <-ch: // its last words
			return a.into(result)
		default:
			return c.why
		}
	case <-ctx.Done():
		c.forget(id)
		return context.Cause(ctx)
	}
}

// into reads an answer; what it has beside what is asked for is left out.
func (a answer) into(result any) error {
	if a.fault != nil {
		return a.fault
	}
	if result == nil || len(a.result) == 0 {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal(a.result, result); err != nil && !errors.As(err, &wrong) { // a field of another shape is as good as none
		return fmt.Errorf("the agent's answer is not valid ACP: %w", err)
	}
	return nil
}

// over reports whether nothing more comes.
func (c *conn) over() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// end says why nothing more comes; the first reason counts.
func (c *conn) end(err error) {
	c.ended.Do(func() {
		switch {
		case errors.Is(err, child.ErrLine):
			err = fmt.Errorf("the agent's output is not ACP: %w", err)
		case errors.Is(err, io.EOF):
			err = c.fate()
		}
		c.why = err
		close(c.gone)
	})
}

// fate is how a program ended whose output has.
func (c *conn) fate() error {
	limit := time.NewTimer(endingMax)
	defer limit.Stop()
	select {
	case <-c.prog.Done():
		return errors.New("the agent has ended: " + c.prog.Fate())
	case <-limit.C:
		return errors.New("the agent has closed its output")
	}
}
