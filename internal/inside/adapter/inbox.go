package adapter

import (
	"bufio"
	"encoding/json"

	"sallyport/internal/port/agent"
)

// Messages of the host (SV-083, SV-086).
const (
	violation    = "checkpoint_violation"
	pauseRequest = "pause_request"
	resumeAgain  = "resume"
	tell         = "tell"
	interrupt    = "interrupt"
)

// messageBytesMax is more than the host ever sends in one line.
const messageBytesMax = 4 << 20

// message is what the host says.
type message struct {
	Type         string  `json:"type"`
	CheckpointID string  `json:"checkpoint_id"`
	ID           string  `json:"id"`
	Text         string  `json:"text"`
	Trial        bool    `json:"trial"` // the turn shows whether the agent answers
	Turn         int     `json:"turn"`  // of a tell that is for the middle of this turn alone; 0 = it is not
	Action       string  `json:"action_taken"`
	Violations   []fault `json:"violations"`
	Omitted      *struct {
		Violations int `json:"violations"`
	} `json:"omitted"`
}

// fault is one rule that is broken.
type fault struct {
	File       string `json:"file"`
	Constraint string `json:"constraint"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

// about names what a message is about: one that was sent again has the same.
func (m message) about() string { return m.Type + " " + m.CheckpointID + m.ID }

// post reads messages until in ends, and closes the channel then. What is no message is left out: the host sends none such.
// It outlives the adapter's work without harm: the process ends with it.
func post(in *bufio.Reader) <-chan message {
	inbox := make(chan message, 256) // more than the host's own queue: a frozen adapter holds nobody up
	go func() {
		defer close(inbox)
		for {
			line, err := agent.ReadLine(in, messageBytesMax)
			var m message
			if len(line) > 0 && json.Unmarshal(line, &m) == nil {
				inbox <- m
			}
			if err != nil {
				return
			}
		}
	}()
	return inbox
}
