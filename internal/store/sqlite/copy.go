package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// Snapshot writes the database as it is now to path. See store.DB.
func (db *DB) Snapshot(ctx context.Context, path string) error {
	select {
	case <-db.closing:
		return errClosed
	case <-db.ended:
		return errClosed
	default:
	}
	from, err := sql.Open("sqlite", source(db.path, "ro", copying)) // the writer and the readers go on meanwhile
	if err != nil {
		return err
	}
	defer from.Close() // read only
	if err := copyTo(ctx, db.ops, "snapshot", from, path); err != nil {
		return fmt.Errorf("copy the database to %q: %w", path, explain(db.path, err))
	}
	return nil
}

// copying are the settings of a connection that a copy is read by: one that may not write to the file, but to another.
var copying = []string{"busy_timeout(5000)", "temp_store(MEMORY)", "trusted_schema(0)"}

// copyTo writes what from holds to path, as a database of its own without a log beside it: whole, on the disk and its owner's alone,
// or not at all. What was at path before goes, and so does what a crash has left half written. The folder is made if it is absent.
// Its operations are noun:write and noun:commit, and noun:drop where it could not be written.
func copyTo(ctx context.Context, ops disk.Ops, noun string, from *sql.DB, path string) error {
	aside := whole.Fresh(path)
	err := ops.Do(noun+":write", func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := drop(aside); err != nil {
			return err
		}
		// SQLite writes into a file that is empty, and leaves its mode as it is.
		f, err := os.OpenFile(aside, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = from.ExecContext(ctx, `VACUUM INTO ?`, aside)
		if err == nil {
			err = f.Sync()
		}
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return errors.Join(err, ops.Do(noun+":drop", func() error { return drop(aside) }))
	}
	return ops.Do(noun+":commit", func() error {
		if err := os.Rename(aside, path); err != nil {
			return err
		}
		return whole.Sync(filepath.Dir(path))
	})
}

// drop removes a database and the files that SQLite keeps beside one; absence is success.
func drop(path string) error {
	var errs []error
	for _, beside := range []string{"", "-journal", "-wal", "-shm"} {
		errs = append(errs, absent(os.Remove(path+beside)))
	}
	return errors.Join(errs...)
}

// overlay makes the content of the database at path that of another, in one transaction. Whoever has it open sees the old one or the new one.
func overlay(ctx context.Context, path, other string) error {
	from, err := sql.Open("sqlite", source(other, "ro", nil))
	if err != nil {
		return err
	}
	defer from.Close()
	conn, err := from.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(driver any) error {
		src, ok := driver.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		})
		if !ok {
			return problem.New(problem.Internal, "the driver copies no database")
		}
		b, err := src.NewBackup(source(path, "rw", writing))
		if err != nil {
			return err
		}
		more := true
		for err == nil && more {
			more, err = b.Step(-1)
		}
		return errors.Join(err, b.Finish())
	})
}

// source returns the driver's name for the file at path, which may hold any byte.
func source(path, mode string, pragmas []string) string {
	q := url.Values{"mode": {mode}, "_pragma": pragmas, "_txlock": {"immediate"}, "_dqs": {"0"}, "_defensive": {"1"}, "_error_rc": {"1"}}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}
