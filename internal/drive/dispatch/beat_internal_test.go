package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
	"sallyport/internal/store"
)

// TestAnAgentThatWaitsAsItsModelBidsIsNotStuck holds it for longer than it may be silent, and no longer than it was bidden.
func TestAnAgentThatWaitsAsItsModelBidsIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeat(&Dispatcher{began: time.Now()}, "")
		judge := func() stuck.Act { return b.judge(1, 1, nil).Act }
		b.ask()()
		b.wait(2 * time.Hour)
		time.Sleep(2*time.Hour + stuck.Silence/2)
		if act := judge(); act == stuck.Kill {
			t.Error("it is ended while it waits")
		}
		time.Sleep(stuck.Silence)
		if act := judge(); act != stuck.Kill {
			t.Error("it is never ended")
		}
	})
}

// chats are what a transaction knows of chats.
type chats struct {
	store.Tx
	of map[id.Chat]id.Conversation
}

func (c chats) Chat(_ context.Context, of id.Chat) (conversation.Chat, error) {
	if where, ok := c.of[of]; ok {
		return conversation.Chat{ID: of, Conversation: where}, nil
	}
	return conversation.Chat{}, problem.Errorf(problem.NotFound, "", "there is no chat %q", of)
}

// TestWhatIsSaidInATurnIsSaidBeforeItIsAMessage: who watches has read it, and may answer it with a number (SM-140).
func TestWhatIsSaidInATurnIsSaidBeforeItIsAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{began: time.Now()}
		say := func(in id.Chat, trying bool) time.Time {
			time.Sleep(time.Second)
			b := newBeat(d, in)
			b.trying = trying
			b.say(agent.Text{Text: "1. Paris 2. Rome"})
			return time.Now()
		}
		known := chats{of: map[id.Chat]id.Conversation{"cht-a": "here", "cht-b": "here", "cht-c": "there"}}
		latest := func(want time.Time) {
			t.Helper()
			if at, err := d.speaking.latest(t.Context(), known, "here"); err != nil || !at.Equal(want) {
				t.Errorf("the last word is of %v, not %v (%v)", at, want, err)
			}
		}
		latest(time.Time{})
		second := say("cht-b", false)
		latest(second)
		say("cht-c", false)
		say("cht-gone", false)
		say("cht-a", true) // nobody is shown it
		latest(second)
		latest(say("cht-a", false))
	})
}
