package storage

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOnlyFoldersOfThisHomesSocketsAreItsOwn(t *testing.T) {
	dir := t.TempDir()
	const home = "0123456789ab"
	own, older, strange := filepath.Join(dir, "own"), filepath.Join(dir, "older"), filepath.Join(dir, "strange")
	for _, path := range []string{own, filepath.Join(older, home), strange} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	s := &Steward{Parts: Parts{Socket: filepath.Join(own, home, "daemon.sock"), Runtime: []string{own, older, strange}}}
	var goes []string
	for _, p := range s.Machine(t.Context()) {
		goes = append(goes, p.Path)
	}
	if want := []string{own, filepath.Join(older, home), older}; !slices.Equal(goes, want) {
		t.Errorf("%q would go, want %q", goes, want)
	}
}
