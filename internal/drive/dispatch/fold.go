package dispatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/whole"
	"sallyport/internal/chat/message"
	"sallyport/internal/chat/prompt"
)

// FoldedFolder is where an agent reads the messages that its prompts only count (CH-014b).
const FoldedFolder = "/app/folded"

// foldedTurns is how many turns' messages stay there, the newest.
const foldedTurns = 16

// fold is that folder outside. It is the host's own: nothing inside can write in it.
type fold struct {
	ops disk.Ops
	dir string
}

// foldOf is the one of the session whose folder is dir.
func foldOf(ops disk.Ops, dir string) fold { return fold{ops, filepath.Join(dir, "folded")} }

// make makes the folder; what a session was given before stays.
func (f fold) make() error {
	err := f.ops.Do("group:folded", func() error {
		if err := os.MkdirAll(filepath.Dir(f.dir), 0o700); err != nil {
			return err
		}
		if err := os.Mkdir(f.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Chmod(f.dir, 0o755) // who reads is another user
	})
	if err != nil {
		return fmt.Errorf("make the folder for what prompts do not show: %w", err)
	}
	return nil
}

// lay lays down what a turn's prompt only counts, and how many there are before those, and returns where the agent finds it; "" if there
// is nothing.
func (f fold) lay(turn int, folded []message.In, before int, loc *time.Location) (string, error) {
	if len(folded) == 0 {
		return "", nil
	}
	rows := make([]prompt.Message, len(folded))
	for i, m := range folded {
		rows[i] = m.Shown()
	}
	name := fmt.Sprintf("turn-%08d.txt", turn) // names are in the order of turns
	err := f.ops.Do("turn:folded", func() error {
		fresh := whole.Fresh(filepath.Join(f.dir, name))
		if err := whole.Write(fresh, []byte(prompt.Older(rows, before, loc))); err != nil {
			return err
		}
		if err := os.Chmod(fresh, 0o644); err != nil {
			return err
		}
		return os.Rename(fresh, filepath.Join(f.dir, name))
	})
	if err == nil {
		err = f.trim()
	}
	if err != nil {
		return "", fmt.Errorf("lay down the messages that the prompt does not show: %w", err)
	}
	return FoldedFolder + "/" + name, nil
}

// trim removes the files of turns long ago.
func (f fold) trim() error {
	all, err := os.ReadDir(f.dir) // by name
	if err != nil || len(all) <= foldedTurns {
		return err
	}
	return f.ops.Do("turn:unfold", func() error {
		for _, old := range all[:len(all)-foldedTurns] {
			if err := os.Remove(filepath.Join(f.dir, old.Name())); err != nil {
				return err
			}
		}
		return nil
	})
}
