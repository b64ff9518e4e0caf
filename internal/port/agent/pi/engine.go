package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/child"
)

// Engine is the inside: it starts pi and speaks with it.
type Engine struct{}

var _ agent.Engine = Engine{}

const (
	queueMax = 64              // commands that wait for pi to read them
	goneMax  = 2 * time.Second // until a program whose output has ended is gone
)

// talk is one conversation.
type talk struct {
	child   *child.Child
	show    agent.Show
	denied  []string
	session string
	loaded  bool

	events chan event    // closed when nothing more comes
	out    chan []byte   // commands on their way to pi
	closed chan struct{} // by Close
	once   sync.Once

	mu      sync.Mutex
	working bool                 // a turn is under way that takes words
	steered map[string]chan bool // words that pi has not answered for, by their id
	broken  error                // why nothing more comes
	last    int                  // id of a command
}

var _ agent.Conversation = (*talk)(nil)

// Open writes pi's settings, starts it and waits until it answers.
func (Engine) Open(ctx context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	s, err := newSetup(o, os.Getenv("HOME"))
	if err != nil {
		return nil, err
	}
	if err := s.write(); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(brought); err == nil {
		show.Note("the repository has a folder " + brought + ": its settings count; its extensions, skills and prompts do not")
	}
	session := newSession()
	if sessionForm().MatchString(last) {
		switch err := mend(s.file(last)); {
		case err == nil:
			t, err := start(ctx, s, o, last, show)
			if err == nil || ctx.Err() != nil {
				return t, err
			}
			show.Note("pi cannot go on with its session and starts a new one: " + err.Error())
		case !errors.Is(err, os.ErrNotExist):
			show.Note("pi cannot read its session and starts a new one: " + err.Error())
		}
	}
	return start(ctx, s, o, session, show)
}

// start starts pi with a session, which is made if it is not there.
func start(ctx context.Context, s setup, o agent.Order, session string, show agent.Show) (agent.Conversation, error) {
	defer keepCommands()()
	argv := append(append([]string{}, o.Argv...), s.flags(s.file(session), o.Off, o.Denied)...)
	c, err := child.Start(child.Options{Argv: argv, Env: append(append([]string{}, o.Env...), s.env()...)})
	if err != nil {
		return nil, err
	}
	t := &talk{
		child: c, show: show, denied: o.Denied, session: session,
		events: make(chan event), out: make(chan []byte, queueMax), closed: make(chan struct{}), steered: map[string]chan bool{},
	}
	go t.read()
	go t.write()
	if err := t.greet(ctx, s); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// greet waits until pi answers, and sees to it that it asks the model it should.
func (t *talk) greet(ctx context.Context, s setup) error {
	is, err := t.ask(ctx, command{Type: "get_state"})
	if err != nil {
		return err
	}
	t.loaded = is.Data.MessageCount > 0
	if s.wire.builtin == "" {
		return nil
	}
	// Of a model that pi does not know it would think as of its newest one.
	all, err := t.ask(ctx, command{Type: "get_available_models"})
	if err != nil {
		return err
	}
	for _, m := range all.Data.Models {
		if m.Provider == s.wire.builtin && m.ID == is.Data.Model.ID {
			return nil
		}
	}
	_, err = t.ask(ctx, command{Type: "set_model", Provider: custom, ModelID: s.model})
	return err
}

// ask gives a command and waits for its answer; what else happens meanwhile is not of a turn.
func (t *talk) ask(ctx context.Context, c command) (event, error) {
	c.ID = t.id()
	if !t.send(c) {
		return event{}, t.gone()
	}
	for {
		select {
		case e, ok := <-t.events:
			switch {
			case !ok:
				return event{}, t.gone()
			case e.Type == "extension_ui_request":
				t.dialog(e, nil)
			case e.Type == "response" && e.ID == c.ID && !e.Success:
				return e, fmt.Errorf("pi refuses %s: %s", c.Type, plain(e.Error))
			case e.Type == "response" && e.ID == c.ID:
				return e, nil
			}
		case <-ctx.Done():
			return event{}, context.Cause(ctx)
		}
	}
}

// command is what pi is told.
type command struct {
	ID        string `json:"id,omitempty"`
	Type      string `json:"type"` // prompt, abort, get_state and more
	Message   string `json:"message,omitempty"`
	Behavior  string `json:"streamingBehavior,omitempty"`
	Provider  string `json:"provider,omitempty"`
	ModelID   string `json:"modelId,omitempty"`
	Confirmed *bool  `json:"confirmed,omitempty"` // of an answer to an extension
	Cancelled bool   `json:"cancelled,omitempty"`
}

func (t *talk) id() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	return strconv.Itoa(t.last)
}

// send puts a command on its way; false if pi has stopped reading.
func (t *talk) send(c command) bool {
	line, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and a bool always can be
	}
	select {
	case t.out <- append(line, '\n'):
		return true
	default:
		return false
	}
}

// write hands commands to pi, so that nobody waits who has something else to do.
func (t *talk) write() {
	for {
		select {
		case line := <-t.out:
			if _, err := t.child.Stdin.Write(line); err != nil {
				return // its end is told by read
			}
		case <-t.closed:
			return
		}
	}
}

// read hands on what pi tells until it ends or tells nonsense.
func (t *talk) read() {
	defer close(t.events)
	r := &reader{in: t.child.Out()}
	for {
		e, err := r.next()
		if err != nil {
			t.mu.Lock()
			t.broken = err
			t.mu.Unlock()
			return
		}
		select {
		case t.events <- e:
		case <-t.closed:
			return
		}
	}
}

// gone says why nothing more comes, or why pi takes nothing more.
func (t *talk) gone() error {
	select {
	case <-t.closed:
		return errors.New("the conversation is closed")
	default:
	}
	t.mu.Lock()
	broken := t.broken
	t.mu.Unlock()
	if errors.Is(broken, errNonsense) {
		return fmt.Errorf("the adapter cannot understand pi: %w", broken)
	}
	limit := time.NewTimer(goneMax)
	defer limit.Stop()
	select {
	case <-t.child.Done():
		return errors.New("pi has ended: " + inert.Brief(t.child.Fate(), failureBytesMax))
	case <-limit.C:
		return errors.New("pi does not read what it is told")
	}
}

func (t *talk) Session() string { return t.session }
func (t *talk) Loaded() bool    { return t.loaded }

// Close ends pi and all that it started.
func (t *talk) Close() error {
	t.once.Do(func() { close(t.closed) })
	return t.child.Close()
}
