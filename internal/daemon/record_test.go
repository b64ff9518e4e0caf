package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/keeper"
	"sallyport/internal/base/problem"
)

// TestAHomeWhoseKeeperCannotReadItsRecordHasAWayOut holds that nothing is started by guess, and that a person is told what to do.
func TestAHomeWhoseKeeperCannotReadItsRecordHasAWayOut(t *testing.T) {
	home, programs := t.TempDir(), t.TempDir()
	for _, name := range []string{"sallyport", keeper.Program} {
		writeFile(t, filepath.Join(programs, name), []byte(name), 0o755)
	}
	o := Options{Home: home, Self: filepath.Join(programs, "sallyport")}
	if _, err := PutRelease(o); err != nil {
		t.Fatal(err)
	}
	at := keeper.RecordPath(home)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, at, []byte("{"), 0o600)
	_, err := PutRelease(o)
	if next := problem.Of(err).Next; problem.KindOf(err) != problem.Unavailable || !strings.HasPrefix(next, "mv "+at+" ") {
		t.Fatalf("%v; next: %s", err, next)
	}
	if err := os.Rename(at, at+".unread"); err != nil { // as it says
		t.Fatal(err)
	}
	if _, err := PutRelease(o); err != nil {
		t.Error(err)
	}
}
