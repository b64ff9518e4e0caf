// Package persontest marks the tests whose subject behaves differently for an ordinary user than for root. `make test` as root
// runs those, and only those, once more as an ordinary user (scripts/test-as-user).
package persontest

import (
	"os"
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
