package sqlite

import (
	"context"
	"io/fs"

	"sallyport/internal/base/disk"
	"sallyport/internal/store"
)

// Migrations are this program's, and Newest is what they come to; Blanks is what a rehearsal may read.
var (
	Migrations = migrations
	Newest     = newest
	Blanks     = blanks
)

// OpenWith opens a database that climbs migrations, be it empty or not.
func OpenWith(ctx context.Context, path string, ops disk.Ops, schema fs.FS) (store.DB, error) {
	return openWith(ctx, path, ops, schema, "")
}

// Stays is the way of a column that a rehearsal may read.
const Stays = stays

// Carried are the tables whose rows a way back carries over.
func Carried() (tables []string) {
	for _, t := range carried {
		tables = append(tables, t.table)
	}
	return tables
}
