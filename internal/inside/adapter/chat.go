package adapter

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sallyport/internal/port/agent"
)

// converse serves a conversation until nothing more is wanted: it waits for words, and each batch of them is a turn. An agent that
// did not come up fails the turn that it is woken for.
func (a *adapter) converse(ctx context.Context, failed error) int {
	end := agent.TurnEnd{Outcome: agent.TurnDone}
	for {
		a.await(func() bool { return len(a.waiting) > 0 })
		switch {
		case a.asked:
			return statusSignal
		case len(a.waiting) == 0 && end.Outcome == agent.TurnDone && failed == nil:
			return 0
		case len(a.waiting) == 0:
			return statusFailed
		}

		words := a.take()
		if failed != nil {
			a.turns = 1
			a.out.begin(a.turns)
			a.out.end(agent.TurnEnd{Turn: a.turns, Outcome: agent.TurnFailed, Reason: oneLine(failed)})
			return statusFailed
		}
		end = a.turn(ctx, words)
		if a.asked {
			return statusSignal
		}
		if a.lost {
			return statusFailed
		}
	}
}

// batch is what one turn of a conversation takes of the words that wait: at least one message, whole. What is left is the next turn's.
func (a *adapter) batch() (texts []string) {
	size := 0
	a.trial = false
	for len(a.waiting) > 0 {
		m := a.waiting[0]
		if size += len(m.words()); len(texts) > 0 && size > chatBytesMax {
			break
		}
		texts, a.trial = append(texts, m.words()), a.trial || m.Trial
		a.waiting = a.waiting[1:]
		a.acknowledge(m)
	}
	return texts
}

// prompt gives the agent of a conversation words by way of the group's hooks, and what it said goes by way of them too.
func (a *adapter) prompt(ctx context.Context, words string) (says string, err error) {
	a.hooked = nil
	text, drop := a.through(ctx, onMessage, words)
	if drop {
		a.dropped(onMessage, "the words of this turn")
	} else {
		text = a.opening(ctx, text)
	}
	if a.trial && a.hooked != nil {
		return "", a.hooked
	}
	if !drop {
		says, err = a.talk.Prompt(ctx, text)
	}

	if a.hooks.has(beforeSend) {
		if says, drop = a.through(context.WithoutCancel(ctx), beforeSend, a.out.held()); drop {
			says = ""
			a.dropped(beforeSend, "what the agent said")
		}
		a.out.instead(says)
	}
	if a.trial && err == nil {
		err = a.hooked
	}
	return says, err
}

// dropped tells of a hook that lets a text go no further.
func (a *adapter) dropped(hook, what string) {
	a.out.Note("the hook " + hook + " has dropped " + what)
	a.hooked = cmp.Or(a.hooked, fmt.Errorf("the hook %s dropped %s", hook, what))
}

// opening puts before the first words of a session what the agent has to know first.
func (a *adapter) opening(ctx context.Context, words string) string {
	if a.opened {
		return words
	}
	a.opened = true
	var parts []string
	out, err := a.hooks.ask(ctx, asked{Hook: onStart, Agent: a.order.Agent, Loaded: a.talk.Loaded()})
	if err != nil {
		a.failedHook(err)
	} else if out.Text != nil && *out.Text != "" {
		parts = append(parts, *out.Text)
	}
	if r := a.order.Resumed; r != nil && !a.talk.Loaded() && r.Transcript != "" {
		parts = append(parts, "What was said and done before, from its end, as it was written down:\n\n"+r.Transcript)
	}
	return strings.Join(append(parts, words), "\n\n")
}

// through is a text as a hook leaves it. One that fails leaves it as it is, and everybody is told.
func (a *adapter) through(ctx context.Context, hook, text string) (left string, drop bool) {
	if text == "" {
		return text, false
	}
	out, err := a.hooks.ask(ctx, asked{Hook: hook, Text: &text})
	switch {
	case err != nil:
		a.failedHook(err)
		return text, false
	case out.Drop:
		return "", true
	case out.Text != nil:
		return *out.Text, *out.Text == ""
	}
	return text, false
}

// failedHook tells of a hook that failed, in the transcript and beneath what the agent says.
func (a *adapter) failedHook(err error) {
	a.hooked = cmp.Or(a.hooked, err)
	text := oneLine(err) + "; the words stand as they were"
	a.out.Note(text)
	a.out.aside("(" + text + ")")
}
