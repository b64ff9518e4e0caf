package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"sallyport/internal/base/disk"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
	"sallyport/internal/store/sqlite/sqlitetest"
	"sallyport/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(unhurried{m}) }

// unhurried is tests whose last goroutines may take longer to end than goleak waits, half a second, on a machine that has much else to do.
type unhurried struct{ *testing.M }

func (u unhurried) Run() int {
	code := u.M.Run()
	for tries := 0; code == 0 && tries < 60 && goleak.Find() != nil; tries++ {
	}
	return code
}

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
