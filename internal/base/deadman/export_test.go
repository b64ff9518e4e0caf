package deadman

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Records returns what is armed in dir, in the order of the names. A record that cannot be
// read is an error, and the others are returned all the same.
func Records(dir string) ([]Armed, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	var all []Armed
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			a, err := Read(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			errs = append(errs, err)
			if err == nil {
				all = append(all, a)
			}
		}
	}
	return all, errors.Join(errs...)
}

// Story returns what the keeper of the record at path wrote. A keeper that never fired
// leaves no log: then it is empty.
func Story(path string) ([]Event, error) {
	file, err := os.Open(logPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var all []Event
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line may be half written
			all = append(all, e)
		}
	}
	return all, lines.Err()
}
