package storetest

import (
	"testing"
	"time"

	"sallyport/internal/store"
)

// Rows stores n changes of which nothing is due.
func Rows(t testing.TB, db store.DB, n int) []store.Change {
	t.Helper()
	s := &suite{t: t, db: db}
	rows := make([]store.Change, n)
	for i := range rows {
		rows[i] = s.addChange(func(c *store.Change) { c.Due = time.Time{} })
	}
	return rows
}
