package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/internal/base/problem"
)

// metadataBytesMax bounds what is read back.
const metadataBytesMax = 1 << 20

// ReadMetadata reads what a session wrote at its start; dir is its folder (RM-023, RM-025).
//
// Errors: problem.NotFound if the session left none.
func ReadMetadata(dir string) (Metadata, error) {
	path := filepath.Join(dir, metadataName)
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return Metadata{}, problem.Errorf(problem.NotFound, "sallyport change list", "the session %s has left nothing to resume from", filepath.Base(dir))
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > metadataBytesMax) {
		err = fmt.Errorf("%s is not a regular file of at most %d bytes", metadataName, metadataBytesMax)
	}
	var m Metadata
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path)
	}
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return Metadata{}, fmt.Errorf("read the metadata of session %s: %w", filepath.Base(dir), err)
	}
	return m, nil
}
