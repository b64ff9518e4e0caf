package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/leaktest"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/store/storetest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func opener(path string) storetest.Opener {
	return func(ops disk.Ops) (store.DB, error) { return sqlite.Open(context.Background(), path, ops) }
}

func TestSQLiteKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "state", "50% of ?#'\"\n.db")
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		sqlitetest.Make(t, path) // what a first open does has tests of its own
		return opener(path)
	})
}
