package disktest

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWhatOthersCanReadWriteOrEnterIsFound(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	at := func(name string) string { return filepath.Join(top, name) }
	err := errors.Join(os.MkdirAll(at("in"), 0o700), os.Symlink("nowhere", at("link")))
	for name, mode := range map[string]os.FileMode{"own": 0o600, "in/read": 0o640, "in/written": 0o602, "run": 0o701} {
		err = errors.Join(err, os.WriteFile(at(name), nil, 0o600), os.Chmod(at(name), mode))
	}
	if err = errors.Join(err, os.Chmod(at("in"), 0o710)); err != nil {
		t.Fatal(err)
	}
	open, seen, err := shared(top)
	if got, want := slices.Sorted(maps.Keys(open)), []string{"in", "in/read", "in/written", "run"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("open are %q, %v, want %q", got, err, want)
	}
	if got, want := slices.Sorted(maps.Keys(seen)), []string{".", "in", "in/read", "in/written", "link", "own", "run"}; !slices.Equal(got, want) {
		t.Errorf("seen are %q, want %q", got, want)
	}
}
