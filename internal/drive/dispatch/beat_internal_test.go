package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/rule/stuck"
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
