package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/internal/port/agent"
)

const (
	queuedMax      = 64 // words that wait for an agent to take them
	queueBytesMax  = 1 << 20
	queueName      = ".sallyport/queued.json"
	queueReadError = "what a person told the agent, and the agent had not yet read, is lost"
)

// enqueue keeps words until the agent asks for them. They are on disk before anybody is told that the agent has them: a session that is
// killed goes on with them. In a conversation the host says again what was in no turn that came to its end. It is called with mu held.
func (t *talk) enqueue(text string) bool {
	if len(t.queued) >= queuedMax {
		return false
	}
	raw, err := json.Marshal(append(t.queued[:len(t.queued):len(t.queued)], text))
	if err != nil || len(raw) > queueBytesMax || !t.at.Chat && agent.WriteOwn(filepath.Join(t.at.home, queueName), raw) != nil {
		return false // then they are another turn's
	}
	t.queued = append(t.queued, text)
	return true
}

// withdraw takes the words that the agent has not asked for.
func (t *talk) withdraw() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	texts := t.queued
	if len(texts) > 0 {
		_ = os.Remove(filepath.Join(t.at.home, queueName)) // said twice after a kill is better than lost
	}
	t.queued = nil
	return texts
}

// requeue takes up what a session that was killed left.
func (t *talk) requeue() error {
	raw, err := agent.ReadOwn(filepath.Join(t.at.home, queueName), queueBytesMax)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &t.queued)
	}
	if err != nil || len(t.queued) > queuedMax {
		t.queued = nil
		return fmt.Errorf(queueReadError+": %w", errors.Join(err, os.ErrInvalid))
	}
	return nil
}
