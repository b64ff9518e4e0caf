package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/lock"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// A commit that was told is on the disk, and so is the copy of a database before its schema changes: whole, under its name.
func TestWhatWasToldIsOnTheDiskAndACopyBeforeTheSchemaChanges(t *testing.T) {
	calls := disktest.Calls(t, func(dir string) {
		path := filepath.Join(dir, "state", "db")
		db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, firstSchema(t))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			disktest.Say("begin")
			count(t, db)
			disktest.Say("told")
		}
		closed(t, db)

		disktest.Say("migrate")
		again, err := sqlite.Open(t.Context(), path, disk.Ops{})
		if err != nil {
			t.Fatal(err)
		}
		disktest.Say("migrated")
		closed(t, again)
	})
	const copied = `sallyport-schema1-\w+\.\d+Z\.db`
	const half = `state/backups/\.new-` + copied
	disktest.Ordered(t, calls,
		`say begin`, `fsync state/db-wal`, `say told`, `say begin`, `fsync state/db-wal`, `say told`, `say migrate`,
		`fsync `+half, `rename `+half+` state/backups/`+copied, `fsync state/backups`, `fsync state/db-wal`, `say migrated`)
}

// The database holds requests and what agents said; a copy of it holds no less.
func TestTheDatabaseAndItsCopiesAreTheOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "db")
	db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, firstSchema(t))
	if err != nil {
		t.Fatal(err)
	}
	count(t, db)
	closed(t, db)
	if db, err = sqlite.Open(t.Context(), path, disk.Ops{}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	write(t, db, audit.Entry{At: time.UnixMilli(1e12), Actor: audit.Host, Verb: "noted"})

	found := 0
	err = filepath.WalkDir(filepath.Dir(path), func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		found++
		want := os.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, not %v", p, info.Mode(), want)
		}
		return nil
	})
	if err != nil || found < 7 { // two folders, the database with its two files, the head record, the copy
		t.Errorf("%d found, %v", found, err)
	}
}

// A step that goes on after its lease went to another writes nothing more, also if it is the same holder that took it anew.
func TestALeaseIsHeldByItsLatestTakingAlone(t *testing.T) {
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), disk.Ops{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	now, ttl := time.UnixMilli(1e12), time.Minute
	err = db.InTx(t.Context(), func(tx store.Tx) error {
		mine, _, err := tx.TakeLease(t.Context(), "repo:/a", "one", now, ttl)
		if err != nil {
			return err
		}
		if _, taken, _ := tx.TakeLease(t.Context(), "repo:/a", "two", now.Add(ttl-1), ttl); taken {
			t.Error("another took a lease that had a moment left")
		}
		renewed, taken, err := tx.TakeLease(t.Context(), "repo:/a", "one", now.Add(time.Second), ttl)
		if err != nil || !taken || renewed.Fence != mine.Fence || !renewed.Until.Equal(now.Add(time.Second+ttl)) {
			t.Errorf("renewed %+v, %v, %v", renewed, taken, err)
		}
		held := func(l lock.Lease, at time.Time) bool {
			there, taken, err := tx.TakeLease(t.Context(), "repo:/a", "another", at, ttl)
			return err == nil && !taken && there == l
		}
		if !held(renewed, renewed.Until.Add(-time.Millisecond)) {
			t.Error("it is not held until it runs out")
		}

		theirs, taken, err := tx.TakeLease(t.Context(), "repo:/a", "two", renewed.Until, ttl)
		if err != nil || !taken || theirs.Fence <= renewed.Fence {
			t.Errorf("taken over %+v, %v, %v", theirs, taken, err)
		}
		if err := tx.DropLease(t.Context(), renewed); err != nil {
			t.Error(err)
		}
		if !held(theirs, renewed.Until) {
			t.Error("who lost it gave it back for the one who has it")
		}

		// The same holder anew, after it ran out: another taking, so what it did under the first one counts no more.
		late, taken, err := tx.TakeLease(t.Context(), "repo:/a", "two", theirs.Until.Add(time.Hour), ttl)
		if err != nil || !taken || late.Fence <= theirs.Fence {
			t.Errorf("taken anew %+v, %v, %v", late, taken, err)
		}
		stale := late
		stale.Fence = theirs.Fence
		if err := tx.DropLease(t.Context(), stale); err != nil || !held(late, theirs.Until.Add(time.Hour)) {
			t.Errorf("an earlier taking gave the later one back: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
