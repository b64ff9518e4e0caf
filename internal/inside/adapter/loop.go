package adapter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/api"
)

const (
	interruptMax = 10 * time.Second // until an interrupted turn is over
	knownMax     = 4096             // messages that are known to have been handed on
)

// adapter drives one agent.
type adapter struct {
	order  agent.Order
	engine agent.Engine
	out    *shown
	home   string
	hooks  hooks
	ended  <-chan os.Signal

	inbox   <-chan message // nil once stdin has ended
	waiting []message      // words that the agent is still to be given
	known   map[string]bool
	talk    agent.Conversation
	leave   func() // ends what a conversation was opened with
	note    note
	turns   int
	asked   bool  // to end
	opened  bool  // the first words of a conversation were given
	trial   bool  // the turn shows whether the agent answers: no hook may fail in it
	hooked  error // of the first hook that failed in the turn
	lost    bool  // the agent does not heed an interruption: its turn is over, and it may still work
}

// turnDone is how a turn has ended.
type turnDone struct {
	says string
	err  error
}

// drive opens the conversation and takes turns until nothing more is wanted.
func (a *adapter) drive(ctx context.Context) int {
	err := a.open(ctx)
	defer a.leave()
	if err == nil {
		defer a.close()
	} else {
		a.out.Note(err.Error())
	}
	if a.order.Chat {
		return a.converse(ctx, err)
	}
	if err != nil {
		a.turns = 1
		a.out.end(agent.TurnEnd{Turn: 1, Outcome: agent.TurnFailed, Reason: oneLine(err)})
		a.await(func() bool { return false }) // the host decides when this is over
		return statusFailed
	}
	words := first(a.order, a.talk.Loaded())
	for {
		end := a.turn(ctx, words)
		if a.asked {
			return statusSignal
		}
		a.await(func() bool { return len(a.waiting) > 0 && a.turns < a.order.MaxTurns })
		if a.asked {
			return statusSignal
		}
		if len(a.waiting) == 0 || a.turns >= a.order.MaxTurns {
			if end.Outcome != agent.TurnDone {
				return statusFailed
			}
			return 0
		}
		words = a.take()
	}
}

// open starts the agent; one that does not come up in time has failed.
func (a *adapter) open(ctx context.Context) error {
	var err error
	if a.note, err = readNote(a.home); err != nil {
		a.out.Note("the adapter cannot read its note of the earlier session, so the agent starts a new one: " + err.Error())
	}
	last := ""
	if a.note.Engine == a.order.Engine && a.note.Agent == a.order.Agent {
		last = a.note.Session
	}
	ctx, a.leave = context.WithCancel(ctx)
	type opened struct {
		talk agent.Conversation
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		talk, err := a.engine.Open(ctx, a.order, last, a.out)
		done <- opened{talk, err}
	}()
	limit := time.NewTimer(agent.OpenMax)
	defer limit.Stop()
	why := ""
	select {
	case o := <-done:
		a.talk, err = o.talk, o.err
		if err != nil {
			return fmt.Errorf("%s did not start: %w", a.order.Agent, err)
		}
		if a.order.Resumed != nil && last != "" && !a.talk.Loaded() {
			a.out.Note("the agent could not go on with its own session; the adapter tells it what was said before")
		}
		return a.keep()
	case <-limit.C:
		why = fmt.Sprintf("%s did not take a request within %s", a.order.Agent, agent.OpenMax)
	case <-a.ended:
		a.asked = true
		why = "the host ended the session before the agent was ready"
	}
	return errors.New(why)
}

// keep notes what it takes to go on later.
func (a *adapter) keep() error {
	a.note = note{Engine: a.order.Engine, Agent: a.order.Agent, Session: a.talk.Session(), Turns: a.turns}
	if err := a.note.write(a.home); err != nil {
		a.out.Note("the agent's session cannot go on later: " + err.Error()) // a full disk ends no turn
	}
	return nil
}

// turn gives the agent words, shows what it does, and tells the host the turn's end.
func (a *adapter) turn(ctx context.Context, words string) agent.TurnEnd {
	a.turns++
	a.out.begin(a.turns)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan turnDone, 1)
	prompt := a.talk.Prompt
	if a.order.Chat {
		prompt = a.prompt
	}
	go func() {
		says, err := prompt(ctx, words)
		done <- turnDone{says, err}
	}()

	end := a.follow(ctx, cancel, done)
	_ = a.keep()
	if end.Outcome == agent.TurnFailed {
		a.out.Note(end.Reason)
	}
	end.More = len(a.waiting) > 0 && a.more() && !a.asked && !a.lost
	a.out.end(end)
	return end
}

// follow hears the host until a turn is over, and says how it has ended.
func (a *adapter) follow(ctx context.Context, cancel func(), done <-chan turnDone) agent.TurnEnd {
	end := agent.TurnEnd{Turn: a.turns, Outcome: agent.TurnDone}
	var over <-chan time.Time
	halt := func(outcome, reason string) {
		if over == nil && !a.asked {
			end.Outcome, end.Reason, over = outcome, reason, time.After(a.patience())
			cancel()
		}
	}
	for {
		select {
		case d := <-done:
			end.Says = d.says
			select {
			case name := <-a.out.fired():
				halt(agent.TurnFailed, off(name))
			default:
			}
			if over == nil && d.err != nil {
				end.Outcome, end.Reason = agent.TurnFailed, oneLine(d.err)
			}
			return end
		case m, ok := <-a.inbox:
			if m.Type == interrupt {
				halt(agent.TurnCancelled, "")
			}
			a.hear(ctx, m, ok, over == nil)
		case name := <-a.out.fired():
			halt(agent.TurnFailed, off(name))
		case <-a.ended:
			halt(agent.TurnCancelled, "")
			a.asked = true
		case <-over:
			a.lost = true
			if end.Reason == "" {
				end.Reason = "the agent did not stop when it was interrupted"
			}
			return end
		}
	}
}

// off says why a turn failed in which a tool was used that is off (CH-097).
func off(name string) string {
	return fmt.Sprintf("the agent used the tool %q, which is off here", inert.Cut(inert.Line(name), 60))
}

// patience is how long an interrupted turn has to end.
func (a *adapter) patience() time.Duration {
	if a.hooks.has(beforeSend) {
		return interruptMax + hookWithin
	}
	return interruptMax
}

// more reports whether another turn may be taken.
func (a *adapter) more() bool { return a.order.Chat || a.turns < a.order.MaxTurns }

// await hears messages until enough is true or nothing more comes.
func (a *adapter) await(enough func() bool) {
	for a.inbox != nil && !a.asked && !enough() {
		select {
		case m, ok := <-a.inbox:
			a.hear(context.Background(), m, ok, false)
		case <-a.ended:
			a.asked = true
		}
	}
}

// take returns all words that wait as one text, and tells the host that the agent has them.
func (a *adapter) take() string {
	if a.order.Chat {
		return strings.Join(a.batch(), "\n\n")
	}
	texts := make([]string, len(a.waiting))
	for i, m := range a.waiting {
		texts[i] = m.words()
		a.acknowledge(m)
	}
	a.waiting = nil
	return joined(texts)
}

// hear takes one message of the host; working says that a turn is under way.
func (a *adapter) hear(ctx context.Context, m message, ok, working bool) {
	if !ok {
		a.inbox = nil
		return
	}
	switch m.Type {
	case pauseRequest: // the freeze stops the agent: to say so is all there is to do
		if a.order.Engine == api.Name { // SV-081: a model's endpoint has no pause, and nobody says that it has
			return
		}
		a.out.answer(map[string]any{"type": "pause_ack", "checkpoint_id": m.CheckpointID, "status": "paused", "pending_operations": []string{}})
	case violation, tell:
		if m.Turn > 0 {
			a.steer(ctx, m, working)
			return
		}
		handed, again := a.known[m.about()]
		switch {
		case handed:
			a.acknowledge(m) // the answer was lost
		case again: // it waits already
		case working && a.steers(ctx, m):
			a.acknowledge(m)
		default:
			a.known[m.about()] = false
			a.waiting = append(a.waiting, m)
		}
	}
}

// steer gives the agent words in the middle of the turn that they are for, or says that it takes none there.
func (a *adapter) steer(ctx context.Context, m message, working bool) {
	if working && m.Turn == a.turns && a.steers(ctx, m) {
		a.acknowledge(m)
		return
	}
	a.out.answer(map[string]any{"type": "tell_ack", "id": m.ID, "status": "refused"})
}

// steers reports whether the agent has taken words in the middle of its turn. Those that a hook looks at first are a turn's own.
func (a *adapter) steers(ctx context.Context, m message) bool {
	return !a.hooks.has(onMessage) && a.talk.Steer(ctx, m.words())
}

// words are what a message means to the agent.
func (m message) words() string {
	if m.Type == violation {
		return violated(m)
	}
	return m.Text
}

// acknowledge tells the host that the agent was given what a message says.
func (a *adapter) acknowledge(m message) {
	if len(a.known) >= knownMax { // the host says nothing again that was answered so long ago
		maps.DeleteFunc(a.known, func(_ string, handed bool) bool { return handed })
	}
	a.known[m.about()] = true
	if m.Type == tell {
		a.out.answer(map[string]any{"type": "tell_ack", "id": m.ID})
		return
	}
	a.out.answer(map[string]any{"type": "violation_ack", "checkpoint_id": m.CheckpointID, "understood": true, "corrective_action": "it was given to the agent"})
}

// close ends the agent; what it left is the sandbox's to end.
func (a *adapter) close() {
	if err := a.talk.Close(); err != nil {
		a.out.Note(oneLine(err))
	}
}
