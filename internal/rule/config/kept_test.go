package config

import (
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/stamp"
)

// A file that was written in the same step of its clock in which it was judged is judged again, for it may look the same.
func TestAFileIsJudgedAgainUnlessItsStampTellsItApart(t *testing.T) {
	f := newFile(t.TempDir(), "words", func(_ string, data []byte) (string, error) { return string(data), nil })
	write := func(text string) {
		t.Helper()
		disktest.Put(t, f.path, text, 0o600)
	}
	says := func(want string) {
		t.Helper()
		if got := f.now(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	for fresh := false; !fresh; { // the clock may move on meanwhile
		write("old")
		says("old")
		if fresh = !stamp.Of(f.path).Before(stamp.Now()); fresh && !f.stamp.None() {
			t.Error("the stamp of this very moment is relied on")
		}
	}
	write("new")
	says("new")
	for !stamp.Of(f.path).Before(stamp.Now()) { // some milliseconds, by the kernel's clock alone
	}
	says("new")
	write("old")
	if f.stamp.None() {
		t.Error("it is read for ever")
	}
	f.stamp = stamp.Of(f.path) // as if it were the same
	says("new")
}
