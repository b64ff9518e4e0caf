package runner

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sallyport/internal/port/agent"
)

// message is what the host says to an agent, as far as a script needs it (SV-083).
type message struct {
	Type         string `json:"type"`
	CheckpointID string `json:"checkpoint_id"`
	ID           string `json:"id"`
	Text         string `json:"text"`
	Violations   []struct {
		File       string `json:"file"`
		Constraint string `json:"constraint"`
		Message    string `json:"message"`
	} `json:"violations"`
}

// about tells whether two messages are one that was sent again.
func (m message) about() string { return m.Type + " " + m.CheckpointID + " " + m.ID }

// post reads messages until in ends, and closes the channel then. It is no loss that
// it outlives the script: the process ends with it.
func post(in *bufio.Reader) <-chan message {
	inbox := make(chan message)
	go func() {
		defer close(inbox)
		for {
			line, err := in.ReadBytes('\n')
			var m message
			if json.Unmarshal(line, &m) == nil {
				inbox <- m
			}
			if err != nil {
				return
			}
		}
	}()
	return inbox
}

// mail is the messages of a script that plays. It is used between two steps and in an
// await: a step that runs is never said to be paused.
type mail struct {
	out     io.Writer
	inbox   <-chan message
	waiting []message
	known   map[string]bool // what came already, and whether a step has had it
}

var errNoMore = errors.New("no more messages come: stdin has ended")

// collect takes what has arrived, without waiting; a pause is kept here until the host ends it.
func (b *mail) collect() {
	for {
		select {
		case m, ok := <-b.inbox:
			if !ok {
				b.inbox = nil
				return
			}
			b.sort(m)
		default:
			return
		}
	}
}

// await returns the oldest message of a type, and answers it.
func (b *mail) await(kind string, limit time.Duration) (message, error) {
	if limit <= 0 {
		limit = agent.AwaitMax
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		for i, m := range b.waiting {
			if m.Type == kind {
				b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
				b.known[m.about()] = true
				b.acknowledge(m)
				return m, nil
			}
		}
		if b.inbox == nil {
			return message{}, errNoMore
		}
		select {
		case m, ok := <-b.inbox:
			if !ok {
				b.inbox = nil
				continue
			}
			b.sort(m)
		case <-timer.C:
			return message{}, fmt.Errorf("no %s came within %s", kind, limit)
		}
	}
}

func (b *mail) sort(m message) {
	switch m.Type {
	case "pause_request":
		b.pause(m.CheckpointID)
	case agent.AwaitViolation, agent.AwaitTell:
		had, again := b.known[m.about()]
		switch {
		case !again:
			b.known[m.about()] = false
			b.waiting = append(b.waiting, m)
		case had: // the answer was lost
			b.acknowledge(m)
		}
	}
}

// pause stands still until the host has ended every pause it asked for, or says nothing more.
func (b *mail) pause(checkpoint string) {
	open := map[string]bool{}
	begin := func(checkpoint string) {
		open[checkpoint] = true
		b.say(map[string]any{"type": "pause_ack", "checkpoint_id": checkpoint, "status": "paused", "pending_operations": []string{}})
	}
	begin(checkpoint)
	for len(open) > 0 {
		m, ok := <-b.inbox
		switch {
		case !ok:
			b.inbox = nil
			return
		case m.Type == "pause_request":
			begin(m.CheckpointID)
		case m.Type == "resume":
			delete(open, m.CheckpointID)
		default:
			b.sort(m)
		}
	}
}

func (b *mail) acknowledge(m message) {
	if m.Type == agent.AwaitTell {
		b.say(map[string]any{"type": "tell_ack", "id": m.ID})
		return
	}
	b.say(map[string]any{
		"type": "violation_ack", "checkpoint_id": m.CheckpointID, "understood": true,
		"corrective_action": "going on with the next step of the script",
	})
}

// say writes one answer as a line of its own.
func (b *mail) say(answer map[string]any) {
	line, err := json.Marshal(answer)
	if err != nil {
		panic(err) // texts and a bool always can be
	}
	fmt.Fprintf(b.out, "%s\n", line)
}
