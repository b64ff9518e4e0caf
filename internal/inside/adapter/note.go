package adapter

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"sallyport/internal/port/agent"
)

// The adapter's own note lies in the agent's home folder, from where nobody but an adapter reads it.
const (
	noteDir      = ".sallyport"
	noteName     = "adapter.json"
	noteBytesMax = 64 << 10
)

// note is what it takes to go on with an agent's session later. The agent can write it: it says nothing that the agent could
// not bring about anyway.
type note struct {
	Engine  string `json:"engine"`
	Agent   string `json:"agent"`
	Session string `json:"session"` // the agent's own name of it; "" = it cannot be gone on with
	Turns   int    `json:"turns"`
}

// readNote returns what an earlier adapter noted; nothing if there was none.
func readNote(home string) (n note, err error) {
	raw, err := agent.ReadOwn(filepath.Join(home, noteDir, noteName), noteBytesMax)
	if errors.Is(err, os.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return note{}, err
	}
	return n, nil
}

// write replaces the note.
func (n note) write(home string) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return agent.WriteOwn(filepath.Join(home, noteDir, noteName), append(raw, '\n'))
}
