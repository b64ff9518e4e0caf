package config

import (
	"os"
	"testing"

	"sallyport/internal/base/stamp"
)

// A file that was written in the same step of its clock in which it was judged is judged again, for it may look the same.
func TestAFileIsJudgedAgainUnlessItsStampTellsItApart(t *testing.T) {
	f := newFile(t.TempDir(), "words", func(_ string, data []byte) (string, error) { return string(data), nil })
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, rested := range []bool{false, true} {
		write("old")
		if got := f.now(); got != "old" {
			t.Fatalf("it says %q", got)
		}
		write("new")
		f.stamp, f.rested = stamp.Of(f.path), rested // as one that looks the same
		if got := f.now(); (got == "old") != rested {
			t.Errorf("rested %t: it says %q", rested, got)
		}
		f.judged = false
	}
}
