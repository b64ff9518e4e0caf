package disktest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCallsTellWhatWasSyncedAndNamedInWhichOrder(t *testing.T) {
	calls := Calls(t, func(dir string) {
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(dir, "a b"))
		must(err)
		must(f.Sync())
		must(f.Close())
		must(os.Rename(filepath.Join(dir, "a b"), filepath.Join(dir, "c")))
		Say("between")
		must(os.Link(filepath.Join(dir, "c"), filepath.Join(dir, "d")))
		must(os.Remove(filepath.Join(dir, "d")))
		_ = os.Remove(filepath.Join(dir, "what is not there"))

		elsewhere, err := os.Create(filepath.Join(t.TempDir(), "e"))
		must(err)
		must(elsewhere.Sync())
		must(elsewhere.Close())
	})
	want := []string{"fsync a b", "rename a b c", "say between", "link c d", "remove d"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestACallThatAnotherThreadInterruptsIsReadWhole(t *testing.T) {
	calls, done := parseTrace(`10 fsync(3</top/a\"b> <unfinished ...>
11 renameat2(5</top>, "x", 6</top/in>, "y", RENAME_NOREPLACE) = 0
10 <... fsync resumed>) = 0
11 rename("/top/x", "/top/y") = -1 ENOENT (No such file or directory)
11 unlinkat(AT_FDCWD</top>, "z", 0) = 0
11 syncfs(7</elsewhere>) = 0
11 access("/.sallyport-test/done", F_OK) = -1 ENOENT (No such file or directory)
`, "/top")
	if want := []string{"rename x in/y", `fsync a\"b`, "remove z"}; !slices.Equal(calls, want) || !done {
		t.Errorf("calls %q, done %v, want %q", calls, done, want)
	}
}
