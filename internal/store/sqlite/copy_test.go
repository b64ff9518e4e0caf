package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// noted adds an audit entry of a verb.
func noted(t *testing.T, db store.DB, verb string) {
	t.Helper()
	write(t, db, audit.Entry{At: time.UnixMilli(1e12), Actor: audit.Host, Verb: verb})
}

// verbs are those of the audit entries in the file at path, which may be a copy.
func verbs(t *testing.T, path string) string {
	t.Helper()
	file := raw(t, path)
	defer closed(t, file)
	if ok := texts(t, file, `PRAGMA integrity_check`); !slices.Equal(ok, []string{"ok"}) {
		t.Errorf("%s: %v", path, ok)
	}
	return strings.Join(texts(t, file, `SELECT verb FROM audit ORDER BY seq`), " ")
}

// SM-101: what a snapshot holds is what was on the disk when it was taken, whatever is written meanwhile and after.
func TestASnapshotHoldsWhatWasCommittedAndReplacesAnOlderOne(t *testing.T) {
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "sallyport.db"))
	at := filepath.Join(dir, "backups", "it's of chg-1.sqlite")
	noted(t, db, "one")
	err := db.InTx(t.Context(), func(tx store.Tx) error { // it waits for nobody who writes
		err := tx.AppendEntry(t.Context(), audit.Entry{At: time.UnixMilli(1e12), Actor: audit.Host, Verb: "two"})
		return errors.Join(err, db.Snapshot(t.Context(), at))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := verbs(t, at); got != "one" {
		t.Errorf("it holds %q", got)
	}
	if err := db.Snapshot(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	noted(t, db, "three")
	if got := verbs(t, at); got != "one two" {
		t.Errorf("the newer one holds %q", got)
	}
	if there, err := os.ReadDir(filepath.Dir(at)); err != nil || len(there) != 1 {
		t.Errorf("beside it lies %v, %v", there, err)
	}
	if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	closed(t, db)
	if err := db.Snapshot(t.Context(), at); problem.KindOf(err) != problem.Unavailable || verbs(t, at) != "one two" {
		t.Errorf("of a closed database: %v", err)
	}
	closed(t, open(t, at)) // it is a database
}

func TestASnapshotThatCannotBeTakenLeavesTheOlderOne(t *testing.T) {
	dir := t.TempDir()
	db := open(t, filepath.Join(dir, "sallyport.db"))
	defer closed(t, db)
	at := filepath.Join(dir, "backups", "swap.sqlite")
	noted(t, db, "one")
	if err := db.Snapshot(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	noted(t, db, "two")
	ended, end := context.WithCancel(t.Context())
	end()
	if err := db.Snapshot(ended, at); err == nil || !strings.Contains(err.Error(), at) {
		t.Errorf("in no time: %v", err)
	}
	if there, err := os.ReadDir(filepath.Dir(at)); err != nil || len(there) != 1 || verbs(t, at) != "one" {
		t.Errorf("there is %v, %v", there, err)
	}
	put(t, filepath.Join(dir, "closed"), nil)
	if err := db.Snapshot(t.Context(), filepath.Join(dir, "closed", "swap.sqlite")); err == nil {
		t.Error("into a file it was taken")
	}
}

func TestASnapshotThatLosesPowerAnywhereIsTheOlderOneOrTheNewer(t *testing.T) {
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		dir := t.TempDir()
		path, at := filepath.Join(dir, "sallyport.db"), filepath.Join(dir, "backups", "swap.sqlite")
		db := open(t, path)
		noted(t, db, "one")
		if err := db.Snapshot(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		noted(t, db, "two")
		closed(t, db)

		var armed bool
		ops := disk.Ops{Around: func(op string, do func() error) error {
			if !armed {
				return do()
			}
			return c.Ops().Around(op, do)
		}}
		db, err := sqlite.Open(t.Context(), path, ops)
		if err != nil {
			t.Fatal(err)
		}
		armed = true
		crashed, err := disktest.Run(func() error { return db.Snapshot(context.Background(), at) })
		armed = false
		if got := verbs(t, at); got != "one" && got != "one two" || err != nil || !crashed && got == "one" {
			t.Errorf("it holds %q, %v", got, err)
		}
		if err := db.Snapshot(t.Context(), at); err != nil || verbs(t, at) != "one two" {
			t.Errorf("again: %v", err)
		}
		if there, err := os.ReadDir(filepath.Dir(at)); err != nil || len(there) != 1 {
			t.Errorf("beside it lies %v, %v", there, err)
		}
		closed(t, db)
	})
	if !slices.Contains(seen, "snapshot:write") || !slices.Contains(seen, "snapshot:commit") {
		t.Errorf("not tried: %v", seen)
	}
}

func TestASnapshotIsOnTheDiskBeforeItHasItsName(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		db := open(t, filepath.Join(dir, "db"))
		if err := db.Snapshot(t.Context(), filepath.Join(dir, "backups", "swap.sqlite")); err != nil {
			t.Fatal(err)
		}
		disktest.Say("taken")
		closed(t, db)
	})
	disktest.Ordered(t, calls, `fsync backups/\.new-swap\.sqlite`, `rename backups/\.new-swap\.sqlite backups/swap\.sqlite`, `fsync backups`, `say taken`)
}
