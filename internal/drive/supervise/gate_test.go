package supervise

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

func TestAFewAreJudgedAtATimeTheUrgentFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		free := make(chan struct{})
		var order []string
		for range validationsMax {
			go g.pass(t.Context(), false, func() error { <-free; return nil }) // it cannot fail
		}
		synctest.Wait()
		gone, leave := context.WithCancel(t.Context())
		lost := make(chan error, 1)
		go func() { lost <- g.pass(gone, true, func() error { order = append(order, "lost"); return nil }) }()
		for i := range crowdMax {
			name, urgent := "can wait", i == crowdMax-1
			if urgent {
				name = "urgent"
			}
			go g.pass(t.Context(), urgent, func() error { order = append(order, name); return nil }) // it cannot fail
			synctest.Wait()
		}
		if !g.crowded() {
			t.Error("so many wait, and it is not crowded")
		}
		leave()
		if err := <-lost; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		free <- struct{}{} // one place: from here on one at a time
		synctest.Wait()
		if want := append([]string{"urgent"}, slices.Repeat([]string{"can wait"}, crowdMax-1)...); !slices.Equal(order, want) {
			t.Errorf("in the order %q", order)
		}
		close(free)
		synctest.Wait()
		if g.inside != 0 || g.crowded() {
			t.Errorf("%d are still inside", g.inside)
		}
	})
}
