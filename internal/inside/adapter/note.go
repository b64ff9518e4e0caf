package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
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

// readNote returns what an earlier adapter noted; nothing if there was none. A pipe in its place is not waited for.
func readNote(home string) (n note, err error) {
	f, err := os.OpenFile(filepath.Join(home, noteDir, noteName), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return n, errors.Join(err, errors.New("the note is no ordinary file"))
	}
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
	// What lies there is the agent's, or of an adapter that was killed: nothing is written into it, and no pipe is waited for.
	if err := os.RemoveAll(path + ".new"); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
