package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/session"
)

// TestALongTranscriptIsPutAside holds that a session which goes on for years has two transcripts at the most, the older one whole.
func TestALongTranscriptIsPutAside(t *testing.T) {
	dir := t.TempDir()
	now, old := filepath.Join(dir, "transcript.jsonl"), filepath.Join(dir, "transcript.old.jsonl")
	turn := func() {
		t.Helper()
		if err := session.TurnOver(disk.Ops{}, dir, 5); err != nil {
			t.Fatal(err)
		}
	}
	turn() // there is none yet
	for _, c := range []struct{ text, kept, aside string }{{"short", "short", ""}, {"longer", "", "longer"}, {"longest", "", "longest"}} {
		disktest.Put(t, now, c.text, 0o600)
		turn()
		kept, _ := os.ReadFile(now)
		aside, _ := os.ReadFile(old)
		if string(kept) != c.kept || string(aside) != c.aside {
			t.Errorf("after %q: %q, and aside %q", c.text, kept, aside)
		}
	}
}
