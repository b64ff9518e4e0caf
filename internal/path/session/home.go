package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/internal/base/disk"
	"sallyport/internal/port/sandbox"
)

// The home folder of an agent that goes on later (agent.Program.Keeps) lies beside its transcript and is the sandbox's
// own. What is in it is the agent's, links and all: the host shows it to a sandbox, moves it as a whole, counts it and
// removes it, and neither reads nor writes in it.

// HomeDir is the agent's home folder of the session whose folder is dir, made or not.
func HomeDir(dir string) string { return filepath.Join(dir, "home") }

// HasHome reports whether a session has left a home folder to go on from.
func HasHome(dir string) bool {
	info, err := os.Lstat(HomeDir(dir))
	return err == nil && info.IsDir()
}

// makeHome makes the home folder, unless the session has one already: then what is in it stays.
func makeHome(ops disk.Ops, dir string, owner sandbox.Owner) error {
	path := HomeDir(dir)
	err := ops.Do("session:home", func() error {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		// The agent may have closed it, and no program of its own could begin there again. Nobody else can put another in its place.
		if err := os.Chmod(path, 0o700); err != nil || os.Geteuid() != 0 {
			return err
		}
		return os.Lchown(path, int(owner.UID), int(owner.GID)) // of itself alone; a crash before it is made good here
	})
	if err != nil {
		return fmt.Errorf("make the agent's home folder: %w", err)
	}
	return nil
}

// MoveHome gives the home folder of the session at from to the one at to, whose program goes on from it. It returns false
// if there is none; then the program begins anew. Moving it twice is moving it once. No sandbox may be alive on it.
func MoveHome(ops disk.Ops, from, to string) (bool, error) {
	if from == to || !HasHome(from) {
		return HasHome(to), nil
	}
	if HasHome(to) {
		return false, fmt.Errorf("move the agent's home folder: %q is there already", HomeDir(to))
	}
	err := ops.Do("session:move-home", func() error {
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		// Its owner may have closed it; moving a folder takes the right to write in it. Nobody else can put another in its place.
		if err := os.Chmod(HomeDir(from), 0o700); err != nil {
			return err
		}
		return os.Rename(HomeDir(from), HomeDir(to))
	})
	if err != nil {
		return false, fmt.Errorf("move the agent's home folder: %w", err)
	}
	return true, nil
}
