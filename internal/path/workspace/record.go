package workspace

import (
	"errors"
	"os"
	"path/filepath"
)

// records reads the records of all workspaces. One that cannot be read is an error.
func records(root string, each func(record)) error {
	for _, kind := range []string{"workspaces", "shown"} {
		folder := filepath.Join(root, kind)
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			r, err := readRecord(filepath.Join(folder, e.Name()))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			each(r)
		}
	}
	return nil
}
