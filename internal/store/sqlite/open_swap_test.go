package sqlite_test

import (
	"path/filepath"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/store"
	"sallyport/internal/store/sqlite"
)

// TestOfSeveralOpenChangesOfAGroupTheNewestStays holds migration 17: until then nothing kept a group from having two.
func TestOfSeveralOpenChangesOfAGroupTheNewestStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sallyport.db")
	db, err := sqlite.OpenWith(t.Context(), path, disk.Ops{}, schemaUntil(t, 16))
	if err != nil {
		t.Fatal(err)
	}
	closed(t, db)
	file := raw(t, path)
	rows := []struct {
		state, group string
		cancelled    bool
	}{{"working", "echo", true}, {"finalized", "echo", false}, {"awaiting_approval", "echo", false}, {"working", "ann", false}}
	for n, r := range rows {
		if _, err := file.Exec(`INSERT INTO change (id, state, top, request, base, uid, attempts, problem, reason, next, reverted_by, cancel, chosen, start_from, identity,
			resumes, rollbacks, created_at, moved_at, due_at, holder, fence, until_at)
			VALUES (?, ?, '/repo', json_object('kind', 'swap', 'group', ?), 'b', 0, 0, '', '', '', '', 0, '', '', '', 0, 0, 1, 2, NULL, '', 1, NULL)`, changeNumber(n), r.state, r.group); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, file)
	db = open(t, path)
	defer closed(t, db)
	if err := db.Read(t.Context(), func(tx store.Tx) error {
		for n, want := range rows {
			if c, err := tx.Change(t.Context(), changeNumber(n)); err != nil || c.Cancel != want.cancelled {
				t.Errorf("%+v is to be cancelled: %v, %v", want, c.Cancel, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
