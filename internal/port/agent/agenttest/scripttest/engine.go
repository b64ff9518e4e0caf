package scripttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/child"
)

// Engine drives the program that an Order's Argv starts.
type Engine struct{}

var _ agent.Engine = Engine{}

// talk is one conversation.
type talk struct {
	child   *child.Child
	show    agent.Show
	session string
	loaded  bool
	lines   chan told // closed when nothing more comes
	broken  error     // why; only after that

	mu   sync.Mutex
	busy bool
}

func (Engine) Open(ctx context.Context, o agent.Order, last string, show agent.Show) (agent.Conversation, error) {
	c, err := child.Start(child.Options{Argv: o.Argv, Env: o.Env, LineBytesMax: 1 << 20})
	if err != nil {
		return nil, err
	}
	t := &talk{child: c, show: show, lines: make(chan told)}
	go t.read(ctx)
	if err := t.send(heard{Do: "open", Text: last}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	select {
	case got, ok := <-t.lines:
		if !ok || got.Session == "" {
			return nil, errors.Join(t.gone(got.Error), c.Close())
		}
		t.session, t.loaded = got.Session, got.Loaded
		return t, nil
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), c.Close())
	}
}

// read hands on what the program tells until it ends or tells nonsense.
func (t *talk) read(ctx context.Context) {
	defer close(t.lines)
	for {
		line, err := t.child.Line()
		var got told
		if err == nil {
			err = json.Unmarshal(line, &got)
		}
		if err != nil {
			t.broken = err
			return
		}
		select {
		case t.lines <- got:
		case <-ctx.Done():
			t.broken = context.Cause(ctx)
			return
		}
	}
}

func (t *talk) send(h heard) error {
	line, err := json.Marshal(h)
	if err == nil {
		_, err = t.child.Stdin.Write(append(line, '\n'))
	}
	return err
}

// gone says why nothing more comes.
func (t *talk) gone(said string) error {
	switch {
	case said != "":
		return errors.New(said)
	case errors.Is(t.broken, child.ErrLine):
		return fmt.Errorf("the agent's output makes no sense: %w", t.broken)
	}
	select {
	case <-t.child.Done():
		return errors.New("the agent has ended: " + t.child.Fate())
	default:
	}
	return errors.New("the agent's output makes no sense")
}

func (t *talk) Session() string { return t.session }
func (t *talk) Loaded() bool    { return t.loaded }

func (t *talk) Prompt(ctx context.Context, text string) (says string, err error) {
	if err := t.send(heard{Do: "prompt", Text: text}); err != nil {
		return "", t.gone("")
	}
	t.working(true)
	defer t.working(false)
	stop := ctx.Done()
	for {
		select {
		case got, ok := <-t.lines:
			switch {
			case !ok || got.Error != "":
				return says, t.gone(got.Error)
			case got.Over:
				if ctx.Err() != nil {
					return says, context.Cause(ctx)
				}
				return says, nil
			case got.Say != "":
				says = got.Say
				t.show.Say(got.Say)
			case got.Think != "":
				t.show.Think(got.Think)
			case got.Kind != "":
				t.show.Tool(got.Kind, got.Title)
			}
		case <-stop:
			stop = nil // its turn ends by itself now
			if err := t.send(heard{Do: "stop"}); err != nil {
				return says, t.gone("")
			}
		}
	}
}

func (t *talk) working(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = is
}

func (t *talk) Steer(_ context.Context, text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy && t.send(heard{Do: "steer", Text: text}) == nil
}

func (t *talk) Close() error { return t.child.Close() }
