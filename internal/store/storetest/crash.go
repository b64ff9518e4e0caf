package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/id"
	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// testCrash loses power at every operation of a few transactions: afterwards the store
// holds the transactions before it whole, and the fatal one whole or not at all.
func testCrash(t *testing.T, s *suite) {
	half := 0
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		open := s.fresh(t)
		var told []id.Change
		crashed, err := disktest.Run(func() error {
			db, err := open(c.Ops())
			if err != nil {
				return err
			}
			defer db.Close()
			for range 3 {
				change, err := s.pair(db)
				if err != nil {
					return err
				}
				told = append(told, change)
			}
			return db.Close()
		})
		if err != nil || crashed != c.Crashed() {
			t.Fatalf("crashed = %v, err = %v", crashed, err)
		}
		db, err := open(disk.Ops{})
		if err != nil {
			t.Fatalf("open after the crash: %v", err)
		}
		if more := whole(t, db, told); more {
			half++
		}
		if _, err := s.pair(db); err != nil {
			t.Errorf("the next transaction: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("operations: %q", seen)
	if half != 3 {
		t.Errorf("%d crashes left a commit that nobody was told of; want one for each of the 3 transactions", half)
	}
}

// pair commits one transaction that leaves a trace in three tables.
func (s *suite) pair(db store.DB) (id.Change, error) {
	ctx := context.Background()
	c := s.aChange()
	return c.ID, db.InTx(ctx, func(tx store.Tx) error {
		_, err := tx.NextUID(ctx)
		return errors.Join(err, tx.AddChange(ctx, c), note(ctx, tx, "paired"))
	})
}

// whole checks that the three tables agree and hold what callers were told is there. It
// reports whether one more is there, which committed as power went.
func whole(t *testing.T, db store.DB, told []id.Change) (more bool) {
	t.Helper()
	ctx := t.Context()
	err := db.Read(ctx, func(tx store.Tx) error {
		entries, err := tx.Entries(ctx, "", 0, 0)
		changes, err2 := tx.Changes(ctx, change.Filter{})
		var there []id.Change
		for _, c := range changes {
			there = append(there, c.ID)
		}
		for _, c := range told {
			if !slices.Contains(there, c) {
				t.Errorf("%s was committed and is gone", c)
			}
		}
		if len(changes) != len(entries) || len(changes) > len(told)+1 {
			t.Errorf("%d changes, %d audit entries, %d callers were told", len(changes), len(entries), len(told))
		}
		more = len(changes) > len(told)
		return errors.Join(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	var uid uint32
	if err := db.InTx(ctx, func(tx store.Tx) (err error) { uid, err = tx.NextUID(ctx); return err }); err != nil {
		t.Fatal(err)
	}
	if want := len(told); int(uid) != want && int(uid) != want+1 {
		t.Errorf("uid %d comes next after %d transactions", uid, want)
	}
	return more
}
