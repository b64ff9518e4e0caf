package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// TestWhatIsReadAgainIsCompiledOnce holds that a read costs no parsing, whatever it asks with.
func TestWhatIsReadAgainIsCompiledOnce(t *testing.T) {
	opened, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	db := opened.(*DB)
	read := func(limit int) int {
		err := db.Read(t.Context(), func(tx store.Tx) error {
			_, err := tx.Changes(t.Context(), change.Filter{Limit: limit})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		made := 0
		for _, s := range db.readers.idle {
			made += len(s.made)
		}
		return made
	}
	if first, again := read(1), read(2); again != first {
		t.Errorf("%d texts were compiled for a read, %d for two of the same", first, again)
	}

	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile("LIMIT \\?[0-9]*[`\"]") // SQLite compiles it again for each value
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := bare.Find(text); found != nil {
			t.Errorf("%s has %s: write LIMIT +?", name, found)
		}
	}
}

// TestAReadThatIsUnderWayOutlivesTheClosing holds that who reads when the database is closed reads to the end, and nobody after them.
func TestAReadThatIsUnderWayOutlivesTheClosing(t *testing.T) {
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "db"), disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(tx store.Tx) error {
		_, err := tx.Changes(t.Context(), change.Filter{})
		return err
	}
	err = db.Read(t.Context(), func(tx store.Tx) error {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		return ask(tx)
	})
	if err != nil {
		t.Errorf("who read when it was closed: %v", err)
	}
	if err := db.Read(t.Context(), ask); !errors.Is(err, errClosed) {
		t.Errorf("who reads a closed database is told: %v", err)
	}
}
