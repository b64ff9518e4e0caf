package lock_test

import (
	"runtime"
	"testing"

	"sallyport/internal/base/lock"
)

func TestWhatIsHeldTwiceIsHeldUntilBothLetGo(t *testing.T) {
	var p lock.Pins[string]
	first, second := p.Hold("a"), p.Hold("a")
	first()
	if !p.Held("a") || p.Held("b") {
		t.Error("one of two let go, and nobody holds it; or somebody holds what nobody asked for")
	}
	second()
	if p.Held("a") || p.Names() != 0 {
		t.Error("it is held for ever")
	}
}

func TestNobodyBeginsToHoldWhileItIsStill(t *testing.T) {
	var p lock.Pins[string]
	defer p.Hold("a")()
	got := make(chan func(), 1)
	err := p.Still(func(held func(string) bool) error {
		go func() { got <- p.Hold("b") }()
		for range 1000 {
			runtime.Gosched()
		}
		if len(got) > 0 || !held("a") || held("b") {
			t.Error("somebody came to hold it meanwhile, or what is held is not told")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	(<-got)()
}
