package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"sallyport/internal/base/problem"
)

//go:embed schema/*.sql
var embedded embed.FS

// newest is the schema that the migrations come to, and what they leave in the tables of an empty file. A test writes it, and compares:
// `make docs`.
//
//go:embed schema.sql
var newest string

// migrations are this program's.
func migrations() fs.FS {
	folder, err := fs.Sub(embedded, "schema")
	if err != nil {
		panic("the migrations have no folder: " + err.Error()) // the name is a valid one
	}
	return folder
}

// Schema is what databases of this program have: the number of its last migration.
func Schema() int {
	files, err := fs.Glob(embedded, "schema/*.sql")
	if err != nil || len(files) == 0 {
		panic("no migration is embedded")
	}
	number, _, _ := strings.Cut(path.Base(slices.Max(files)), "_")
	schema, err := strconv.Atoi(number)
	if err != nil {
		panic("a migration has no number: " + err.Error())
	}
	return schema
}

// migrate brings the schema from version found to this program's, one file and one named
// operation at a time; an empty file gets all of it in one. A database that holds data is copied first (backup); if a migration
// fails it is as it was. A newer schema is left exactly as it was found.
func (db *DB) migrate(ctx context.Context, found int64) error {
	if found == 0 && db.newest != "" {
		return db.ops.Do("db:migrate", func() error { return db.begin(ctx) })
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.pool, db.schema, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	if found > known {
		return db.tooNew(found, known)
	}
	if found == known {
		return nil
	}
	copied := ""
	if found > 0 {
		if copied, err = db.backup(ctx, found); err != nil {
			return fmt.Errorf("the host did not migrate the database from schema %d to %d, because it could not copy it first: %w", found, known, err)
		}
	}
	if err := db.climb(ctx, provider, found, known); err != nil {
		return db.fallBack(ctx, copied, found, fmt.Errorf("migrate %q from schema %d to %d: %w", db.path, found, known, err))
	}
	return nil
}

// begin makes the whole schema, or nothing of it.
func (db *DB) begin(ctx context.Context) error {
	tx, err := db.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, db.newest); err != nil {
		return errors.Join(fmt.Errorf("make the tables of %q: %w", db.path, err), tx.Rollback())
	}
	return tx.Commit()
}

// climb applies what is not applied yet.
func (db *DB) climb(ctx context.Context, provider *goose.Provider, at, known int64) error {
	for at < known {
		err := db.ops.Do("db:migrate", func() error {
			done, err := provider.UpByOne(ctx)
			if err == nil {
				at = done.Source.Version
			}
			return err
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tooNew refuses a database that a later program has written, and names the copy that this one can still read.
func (db *DB) tooNew(found, known int64) error {
	way := ""
	if path := db.lastBackup(known); path != "" {
		way = fmt.Sprintf("; or put the copy %q from before the upgrade in its place", path)
	}
	return problem.Errorf(problem.Unavailable, "sallyport version",
		"the database %q was written by a newer sallyport (schema %d; this program knows %d): run that version, or one after it, on this home%s",
		db.path, found, known, way)
}

// version returns the highest migration that was applied, 0 for an empty file.
func (db *DB) version(ctx context.Context) (int64, error) {
	var there bool
	err := db.pool.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version')`).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	var version int64
	err = db.pool.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version)
	return version, err
}
