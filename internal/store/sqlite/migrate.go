package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"sallyport/internal/problem"
)

//go:embed schema/*.sql
var embedded embed.FS

// migrate brings the schema from version found to this program's, one file and one named
// operation at a time. A newer schema is left exactly as it was found.
func (db *DB) migrate(ctx context.Context, found int64) error {
	folder, err := fs.Sub(embedded, "schema")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db.pool, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	sources := provider.ListSources()
	known := sources[len(sources)-1].Version
	if found > known {
		return problem.Errorf(problem.Unavailable, "sallyport version",
			"the database %q was written by a newer sallyport (schema %d; this program knows %d): run that version, or one after it, on this home",
			db.path, found, known)
	}
	for found < known {
		err := db.ops.Do("db:migrate", func() error {
			done, err := provider.UpByOne(ctx)
			if err == nil {
				found = done.Source.Version
			}
			return err
		})
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("migrate %q from schema %d: %w", db.path, found, err)
		}
	}
	return nil
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
