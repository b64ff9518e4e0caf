package disktest

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// Private checks that nobody but its owner can read, write or enter what lies at a path, and all below it. has are names
// below it that have to be there: a walk over nothing would hold nothing.
func Private(t testing.TB, top string, has ...string) {
	t.Helper()
	open, seen, err := shared(top)
	if err != nil {
		t.Error(err)
	}
	for name, mode := range open {
		t.Errorf("others can use %s: %v", filepath.Join(top, name), mode)
	}
	for _, name := range has {
		if !seen[name] {
			t.Errorf("there is no %s", filepath.Join(top, name))
		}
	}
}

// shared returns the names below a path, and what of them is not its owner's alone. A link has no rights of its own.
func shared(top string) (open map[string]fs.FileMode, seen map[string]bool, err error) {
	open, seen = map[string]fs.FileMode{}, map[string]bool{}
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		seen[name] = true
		if info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
			open[name] = info.Mode()
		}
		return err
	})
	return open, seen, err
}
