package store

import (
	"path/filepath"
	"strings"

	"sallyport/internal/base/id"
)

// BackupsFolder is the folder in a home's .state that holds copies of its database.
const BackupsFolder = "backups"

// SnapshotPath is where the database is kept as it was before a change landed (SM-101), in the folder of copies. It goes once the change has ended.
func SnapshotPath(backups string, c id.Change) string {
	return filepath.Join(backups, "swap-"+string(c)+".sqlite")
}

// SnapshotOf returns the change that a file's name in that folder belongs to; false if it is no snapshot's.
func SnapshotOf(name string) (id.Change, bool) {
	rest, begins := strings.CutPrefix(name, "swap-")
	rest, ends := strings.CutSuffix(rest, ".sqlite")
	c, err := id.ParseChange(rest)
	return c, begins && ends && err == nil
}
