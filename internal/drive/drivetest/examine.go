package drivetest

import (
	"fmt"
	"os"
	"path/filepath"
)

// Everything names all that lies in the home and in the repository, and when it was written.
func (h *Home) Everything() (all []string) {
	h.T.Helper()
	err := filepath.WalkDir(h.Parts.Home, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			all = append(all, fmt.Sprint(path, info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return all
}
