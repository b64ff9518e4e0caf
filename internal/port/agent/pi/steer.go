package pi

import (
	"context"
	"time"
)

// steerMax is how long words in the middle of a turn wait to be taken. pi reads its lines in order: they are not lost then.
const steerMax = 10 * time.Second

// begin lets words be taken in the middle of the turn.
func (t *talk) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working = true
}

// settle ends that; words that pi has not answered for were not taken.
func (t *talk) settle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working = false
	for id, taken := range t.steered {
		close(taken)
		delete(t.steered, id)
	}
}

// rest reports whether no words are on their way to pi, and then takes no more.
func (t *talk) rest() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.steered) == 0 {
		t.working = false
	}
	return !t.working
}

// Steer gives pi words in the middle of a turn: it reads them once the tools that run are done.
func (t *talk) Steer(ctx context.Context, text string) bool {
	id, taken := t.id(), make(chan bool, 1)
	t.mu.Lock()
	if !t.working || !t.send(command{ID: id, Type: "prompt", Message: text, Behavior: "steer"}) {
		t.mu.Unlock()
		return false
	}
	t.steered[id] = taken
	t.mu.Unlock()
	limit := time.NewTimer(steerMax)
	defer limit.Stop()
	select {
	case ok := <-taken:
		return ok
	case <-limit.C:
	case <-ctx.Done():
	}
	return true
}

// answered notes that pi has taken words, or refused them; false if id is of no such.
func (t *talk) answered(id string, ok bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken, is := t.steered[id]
	if is {
		taken <- ok
		delete(t.steered, id)
	}
	return is
}
