package dispatch

import (
	"slices"
	"strings"
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
		began := time.Now()
		begin := func(in id.Conversation, of id.Chat) *beat {
			return newBeat(d, conversation.Chat{Conversation: in, ID: of})
		}
		here, beside, there := begin("here", "a"), begin("here", "b"), begin("there", "c")
		said := func(after time.Time, want ...string) {
			t.Helper()
			got := d.speaking.since("here", after)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%q is said, not %q", got, want)
			}
		}
		said(began.Add(-1))
		time.Sleep(time.Second)
		here.say(agent.Text{Text: "1. Paris "})
		there.say(agent.Text{Text: "elsewhere"})
		time.Sleep(time.Second)
		here.say(agent.Text{Text: strings.Repeat("and so on ", 5000) + "2. Rome"})
		said(began, "1. Paris "+strings.Repeat("and so on ", 5000)+"2. Rome") // all of the turn, however long
		said(time.Now())
		beside.say(agent.Text{Text: "Hello"})
		here.next(2)
		said(began, "Hello") // what was said in the turn before is a message
		beside.trying = true
		beside.say(agent.Text{Text: "nobody is shown it"})
		said(began, "Hello")
	})
}
