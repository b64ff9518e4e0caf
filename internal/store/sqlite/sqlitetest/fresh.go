// Package sqlitetest opens databases for tests of what stands on one.
package sqlitetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// fresh is the file of a database that nothing was written to, as a first open leaves it: to make one is hundreds of statements.
var fresh = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sallyport-fresh")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "fresh.db")
	db, err := sqlite.Open(context.Background(), path, disk.Ops{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil { // folds its log back into the file
		return nil, err
	}
	return os.ReadFile(path)
})

// Make makes a database at path, where none is, as it is after a first open.
func Make(t testing.TB, path string) {
	t.Helper()
	raw, err := fresh()
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatalf("make a database: %v", err)
	}
}

// Open opens a database that it makes at path, where none is. The test closes it.
func Open(t testing.TB, path string) store.DB {
	t.Helper()
	Make(t, path)
	db, err := sqlite.Open(t.Context(), path, disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}
