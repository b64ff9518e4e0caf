package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/agent"
)

// TestWhatAnAgentPutsInThePlaceOfAFileHoldsNobodyUp holds that an agent cannot keep every later session of it from beginning.
func TestWhatAnAgentPutsInThePlaceOfAFileHoldsNobodyUp(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	disktest.Put(t, outside, "kept", 0o600)
	traps := map[string]func(path string) error{
		"nothing":  func(string) error { return nil },
		"a file":   func(path string) error { return os.WriteFile(path, []byte("old"), 0o600) },
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link":   func(path string) error { return os.Symlink(outside, path) },
		"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
	}
	reads := map[string]string{"a file": "old", "a link": "kept"}
	for there, set := range traps {
		for beside, trap := range traps {
			t.Run(there+" and "+beside, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "in", "note")
				if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), set(path), trap(path+".new")); err != nil {
					t.Fatal(err)
				}
				raw, err := agent.ReadOwn(path, 4)
				if want := reads[there]; string(raw) != want || (err == nil) != (want != "") || errors.Is(err, os.ErrNotExist) != (there == "nothing") {
					t.Errorf("it reads %q, %v", raw, err)
				}
				if err := agent.WriteOwn(path, []byte("new")); err != nil {
					t.Fatal(err)
				}
				if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
					t.Errorf("it is %v, %v", info, err)
				}
				if raw, err := agent.ReadOwn(path, 3); string(raw) != "new" || err != nil {
					t.Errorf("it reads what was written as %q, %v", raw, err)
				}
				if _, err := agent.ReadOwn(path, 2); err == nil || !strings.Contains(err.Error(), "more than 2 bytes") {
					t.Errorf("what is too long: %v", err)
				}
				if names, err := os.ReadDir(filepath.Dir(path)); len(names) != 1 {
					t.Errorf("%v lie there, %v", names, err)
				}
			})
		}
	}
	if raw, err := os.ReadFile(outside); string(raw) != "kept" {
		t.Errorf("what a link led to holds %q, %v", raw, err)
	}
}

func TestWhatIsWrittenIntoAnAgentsHomeIsWholeAndTheAgentsAlone(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		if err := agent.WriteOwn(filepath.Join(dir, "of", "it", "note"), []byte("new")); err != nil {
			t.Fatal(err)
		}
		disktest.Private(t, filepath.Join(dir, "of"), "it/note")
	})
	disktest.Ordered(t, calls, `fsync of/it/note\.new`, `rename of/it/note\.new of/it/note`)
}
