package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// chatter is a person who says one thing after another to a group, each once the one before is answered.
type chatter struct {
	*swapper
	said  int
	waits []time.Duration // until each was answered
}

// asks says the next thing, and reports whether the daemon answered it.
func (n *chatter) asks(t *testing.T, c *client.Client) bool {
	n.said++
	words, began := fmt.Sprint("thing ", n.said), time.Now()
	if !n.says(t, c, words, words) {
		return false
	}
	for time.Since(began) < patience {
		n.mu.Lock()
		answered, over := n.count(line(words)) > 0, n.over
		n.mu.Unlock()
		if answered {
			n.waits = append(n.waits, time.Since(began))
			return true
		}
		if over {
			return false
		}
		time.Sleep(3 * time.Millisecond)
	}
	return false
}

// TestTwoGroupsChangeAtOnceWhileAThirdChats: two groups are on trial at the same time, one is kept and one goes back, and a third answers
// all the while. What is asked of it waits for none of them: for no landing, no trial, no session that begins anew.
func TestTwoGroupsChangeAtOnceWhileAThirdChats(t *testing.T) {
	if !apart(t) {
		return
	}
	w := newSwapped(t)
	c := w.start(t)
	for _, name := range []string{"ann", "bob"} {
		w.makes(t, c, name)
	}
	kept, back, bob := newSwapper("confirm"), newSwapper("rollback"), &chatter{swapper: newSwapper("")}
	back.group, bob.group = "ann", "bob"
	both := []*swapper{kept, back}
	for _, s := range append(slices.Clone(both), bob.swapper) {
		defer s.watch(t, c)()
		await(t, "the chat to be shown", s.sees(func(n *terminal) bool { return n.ready }))
	}
	for range 5 {
		if !bob.asks(t, c) {
			t.Fatalf("bob does not answer: %s", w.said())
		}
	}
	alone := bob.waits[1:] // the first began its session

	done := make(chan struct{})
	var chats sync.WaitGroup
	chats.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if !bob.asks(t, c) {
				t.Errorf("bob was asked %q and has not answered", fmt.Sprint("thing ", bob.said))
				return
			}
		}
	})
	changeBoth(t, w, c, both)
	close(done)
	chats.Wait()

	most := 10*slices.Max(alone) + time.Second
	if beside := bob.waits[5:]; len(beside) < 5 || slices.Max(beside) > most {
		t.Errorf("of %d things the slowest was answered after %s; alone, after %s", len(beside), slices.Max(beside), slices.Max(alone))
	}
	bob.mu.Lock()
	for n := range bob.said {
		if got := bob.count(line(fmt.Sprint("thing ", n+1))); got != 1 {
			t.Errorf("thing %d was answered %d times", n+1, got)
		}
	}
	bob.mu.Unlock()
	for group, want := range map[string]bool{"echo": true, "ann": false, "bob": false} {
		if text := git(t, w.home, "show", "HEAD:groups/"+group+"/runner/prompts/system.md"); strings.Contains(text, greets) != want {
			t.Errorf("the prompt of %s is %q", group, text)
		}
	}
	w.stop(t, c)
	w.leftNothing(t)
}

// changeBoth has two groups change what they run, on trial at the same time, and each come to its end.
func changeBoth(t *testing.T, w *swapped, c *client.Client, both []*swapper) {
	t.Helper()
	each := func(what string, do func(s *swapper) bool) {
		t.Helper()
		for _, s := range both {
			if !do(s) {
				t.Fatalf("%s: the daemon went away: %s", what, w.said())
			}
		}
	}
	each("wish", func(s *swapper) bool { return s.says(t, c, s.group+"-wish", wish) })
	each("card", func(s *swapper) bool { return s.until(t, "the card", asksToApprove) })
	each("trial", func(s *swapper) bool { return s.decides(t, c, "message 1", asksToConfirm) })
	open, err := client.Call(t.Context(), c, api.ChangeList, api.Filter{States: []string{api.InTrial}})
	if err != nil || len(open) != 2 {
		t.Errorf("%d changes are on trial at once, %v", len(open), err)
	}
	each("word", func(s *swapper) bool { return s.says(t, c, s.group+"-word", s.word) })
	each("end", func(s *swapper) bool { return s.until(t, "the end of the change", s.tellsEnd) })
}
