package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	f, err := os.Open(filepath.Join(home, noteDir, noteName))
	if errors.Is(err, os.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, noteBytesMax+1))
	switch {
	case err != nil:
		return n, err
	case len(raw) > noteBytesMax:
		return n, fmt.Errorf("the note has more than %d bytes", noteBytesMax)
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return note{}, err
	}
	return n, nil
}

// write replaces the note: it is the old one or the new one, whatever happens.
func (n note) write(home string) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	dir := filepath.Join(home, noteDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(dir, noteName)
	if err := os.WriteFile(path+".new", append(raw, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
