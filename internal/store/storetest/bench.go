package storetest

import (
	"testing"
	"time"

	"sallyport/internal/path/change"
	"sallyport/internal/store"
)

// Rows stores n changes of which nothing is due.
func Rows(t testing.TB, db store.DB, n int) []change.Row {
	t.Helper()
	s := &suite{t: t, db: db}
	rows := make([]change.Row, n)
	for i := range rows {
		rows[i] = s.addChange(func(c *change.Row) { c.Due = time.Time{} })
	}
	return rows
}
