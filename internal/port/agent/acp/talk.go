package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
)

// talk is one session of an agent.
type talk struct {
	conn     *conn
	at       place
	dialect  dialect
	show     agent.Show
	session  string
	loaded   bool
	keeps    bool   // the session can be gone on with later
	steering bool   // it takes words in the middle of a turn
	foreword string // what a new session is still to be told; it belongs to the one who prompts

	mu     sync.Mutex
	turn   *turn    // nil between turns
	queued []string // words for an agent that asks for them
}

func newTalk(c *conn, at place, d dialect, show agent.Show) *talk {
	t := &talk{conn: c, at: at, dialect: d, show: show}
	c.hear, c.ask = t.hear, t.ask
	return t
}

func (t *talk) Session() string {
	if !t.keeps {
		return ""
	}
	return t.session
}

func (t *talk) Loaded() bool { return t.loaded }

func (t *talk) Close() error { return t.conn.prog.Close() }

// Prompt takes a turn, and another one with words that the agent was to ask for and did not.
func (t *talk) Prompt(ctx context.Context, text string) (says string, err error) {
	if t.foreword != "" {
		text = t.foreword + "\n\n" + text
	}
	for {
		t.foreword = ""
		says, err = t.prompt(ctx, text)
		if err != nil {
			return says, err // what is queued waits for the next turn
		}
		if text = strings.Join(t.withdraw(), "\n\n"); text == "" {
			return says, nil
		}
	}
}

// prompt takes one turn. An agent that does not end a turn that was cancelled is ended itself, and so is one that
// makes no sense any more: it must not go on unseen.
func (t *talk) prompt(ctx context.Context, text string) (string, error) {
	u := newTurn()
	t.working(u)
	defer t.working(nil)
	_, done := t.conn.send("session/prompt", words(t.session, text))
	stop, halt := ctx.Done(), u.halt
	var over <-chan time.Time
	cancel := func() {
		stop, halt = nil, nil
		t.cancelled(u)
		t.conn.note("session/cancel", map[string]any{"sessionId": t.session})
		over = time.After(cancelMax)
	}
	for {
		select {
		case a := <-done:
			says, err := t.outcome(ctx, u, a)
			if done = t.another(u, err); done == nil {
				return says, err
			}
		case <-t.conn.gone:
			select {
			case a := <-done: // its last words
				return t.outcome(ctx, u, a)
			default:
				return t.last(u), ended(t.conn.why, t.conn.prog)
			}
		case <-stop:
			cancel()
		case <-halt:
			cancel()
		case <-over:
			t.conn.end(errors.New("the agent did not stop when the host asked it to, so the host ended it"))
			return t.last(u), ended(t.conn.why, t.conn.prog)
		}
	}
}

// ended ends a program of which err is known, and says so in one line.
func ended(err error, prog program) error {
	if left := prog.Close(); left != nil {
		return fmt.Errorf("%w; %w", err, left)
	}
	return err
}

// another is the next answer that a turn still waits for: words that were given in its middle have one of their own. Without any
// the turn is over.
func (t *talk) another(u *turn, err error) <-chan answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || len(u.also) == 0 {
		t.turn = nil
		return nil
	}
	next := u.also[0]
	u.also = u.also[1:]
	return next
}

// outcome is what a turn came to.
func (t *talk) outcome(ctx context.Context, u *turn, a answer) (string, error) {
	var got turnOver
	err := a.into(&got)
	t.mu.Lock()
	defer t.mu.Unlock()
	says := u.last()
	switch {
	case u.unasked != "":
		return says, fmt.Errorf("the agent used a tool of the kind %q, which its permissions: refuse: it did not ask first, or did not heed the no", u.unasked)
	case ctx.Err() != nil:
		return says, context.Cause(ctx)
	case err != nil:
		return says, err
	case t.dialect.disguise != nil:
		if said, failed := t.dialect.disguise(u, got); failed {
			return says, errors.New(explained(0, said))
		}
	}
	switch got.Reason {
	case "end_turn":
		return says, nil
	case "cancelled":
		if u.refused { // some agents end their turn when a tool is refused
			return says, nil
		}
		return says, errors.New("the agent cancelled its turn by itself")
	case "max_tokens":
		return says, errors.New("the model's answer reached its limit of tokens")
	case "max_turn_requests":
		return says, errors.New("the agent reached its own limit of requests for one turn")
	case "refusal":
		return says, errors.New("the model refused to go on")
	}
	return says, fmt.Errorf("the agent ended its turn for a reason that sallyport does not know: %s", inert.Brief(got.Reason, saidBytesMax))
}

// last is what the agent said last in a turn.
func (t *talk) last(u *turn) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return u.last()
}

func (t *talk) working(u *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turn = u
}

// cancelled says that what is asked from now on in a turn is not allowed.
func (t *talk) cancelled(u *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u.cancelled = true
}

// Steer gives words to an agent that takes them in the middle of a turn: by the way that it has announced, by asking for them between its
// tool calls, or as another prompt of the same turn.
func (t *talk) Steer(ctx context.Context, text string) bool {
	t.mu.Lock()
	ready := t.turn != nil && !t.turn.cancelled
	switch {
	case ready && t.dialect.drains:
		defer t.mu.Unlock()
		return t.enqueue(text)
	case ready && t.dialect.joins && len(t.turn.also) < queuedMax:
		defer t.mu.Unlock()
		_, done := t.conn.send("session/prompt", words(t.session, text))
		t.turn.also = append(t.turn.also, done)
		return true
	}
	t.mu.Unlock()
	if !ready || !t.steering {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, steerMax)
	defer cancel()
	params := words(t.session, text)
	params["_meta"] = map[string]any{"steering": map[string]string{"idleBehavior": "promptRequired"}}
	var got struct {
		Outcome string `json:"outcome"`
	}
	err := t.conn.call(ctx, "_session/steering", params, &got)
	return err == nil && got.Outcome == "injected"
}
