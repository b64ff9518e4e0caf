package echo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk/disktest"
)

// TestADevAgentThatGoesOnDoesNothingTwice holds it for what an interrupted session had done, and for nothing else.
func TestADevAgentThatGoesOnDoesNothingTwice(t *testing.T) {
	top := t.TempDir()
	root, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	disktest.Put(t, filepath.Join(top, "gone"), "", 0o600)
	for _, d := range []*dev{{}, {again: true}, {again: true}} {
		for _, line := range []string{"one", "two"} {
			if err := d.change(root, "append", "list", line); err != nil {
				t.Error(err)
			}
		}
		if err := d.change(root, "remove", "gone", ""); err != nil {
			t.Error(err)
		}
	}
	d := &dev{}
	if err := d.change(root, "remove", "gone", ""); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of what was never there it said %v", err)
	}
	if err := d.change(root, "append", "list", "one"); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(top, "list")); err != nil || string(text) != "one\ntwo\none\n" {
		t.Errorf("%q, %v", text, err)
	}
}
