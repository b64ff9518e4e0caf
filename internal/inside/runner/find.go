package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// find returns the program that a name means with this environment and folder.
func find(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if err := executable(path); err != nil {
			return "", fmt.Errorf("start %q: %w", name, err)
		}
		return path, nil
	}
	var search string
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			search = value
		}
	}
	last := os.ErrNotExist
	for _, folder := range filepath.SplitList(search) {
		if !filepath.IsAbs(folder) {
			continue // a relative entry would mean whatever lies in the workspace
		}
		path := filepath.Join(folder, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if !os.IsNotExist(err) {
			last = err
		}
	}
	return "", fmt.Errorf("find %q in PATH: %w", name, last)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no regular file: %w", path, os.ErrPermission)
	}
	return unix.Access(path, unix.X_OK)
}
