package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/chat/conversation"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// TestAnAgentThatWaitsAsItsModelBidsIsNotStuck holds it for longer than it may be silent, and no longer than it was bidden.
func TestAnAgentThatWaitsAsItsModelBidsIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBeat(&Dispatcher{began: time.Now()}, conversation.Chat{})
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

// TestWhatIsSaidInATurnIsSaidBeforeItIsAMessage: who watches has read it, and may answer it with a number (SM-140).
func TestWhatIsSaidInATurnIsSaidBeforeItIsAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Dispatcher{began: time.Now()}
		say := func(in id.Conversation, trying bool) time.Time {
			time.Sleep(time.Second)
			b := newBeat(d, conversation.Chat{Conversation: in})
			b.trying = trying
			b.say(agent.Text{Text: "1. Paris 2. Rome"})
			return time.Now()
		}
		latest := func(want time.Time) {
			t.Helper()
			if !d.speaking.has("here", want.Add(-1), "rome") || d.speaking.has("here", want, "") || d.speaking.has("here", want.Add(-1), "oslo") {
				t.Errorf("it is not %v when it was said last", want)
			}
		}
		if d.speaking.has("here", time.Time{}, "") {
			t.Error("nobody has spoken")
		}
		first := say("here", false)
		latest(first)
		say("there", false)
		say("here", true) // nobody is shown it
		latest(first)
		latest(say("here", false))
	})
}
