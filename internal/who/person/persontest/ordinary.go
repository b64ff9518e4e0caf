// Package persontest marks the tests whose subject behaves differently for an ordinary user than for root. `make test` as root
// runs those, and only those, once more as an ordinary user (scripts/test-as-user).
package persontest

import (
	"os"
	"path/filepath"
	"testing"
)

// OnlyMarked is set where only what is marked runs.
const OnlyMarked = "SALLYPORT_ONLY_MARKED"

// Ordinary marks a test, with what is different: the script finds the call in its source.
func Ordinary(t testing.TB, differs string) {
	t.Helper()
	if uid := os.Geteuid(); uid != 0 {
		t.Logf("as uid %d: %s", uid, differs)
	}
}

// Skips reports whether a row of a table or a story is left out, because only what is marked runs and it is not.
func Skips(marked bool) bool { return os.Getenv(OnlyMarked) != "" && !marked }

// OpenWay lets other users reach a folder of a test: that and those above it, up to the one in which everybody's files are. That one
// is not the test's to open.
func OpenWay(t testing.TB, folder string) {
	t.Helper()
	for up := folder; up != os.TempDir() && up != filepath.Dir(up); up = filepath.Dir(up) {
		info, err := os.Stat(up)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&os.ModeSticky != 0 {
			return
		}
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
