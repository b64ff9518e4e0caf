package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
	"sallyport/internal/store"
)

// A database is copied before its schema changes: into backups/ beside it, named by the
// schema it had and the time (UTC), 0600. The newest of a schema is kept, of backupsMax schemas.
const (
	backupsMax = 5
	backupTime = "20060102T150405.000Z"
)

var backupName = pattern.Of(`^sallyport-schema([0-9]{1,9})-([0-9]{8}T[0-9]{6}\.[0-9]{3}Z)\.db$`)

// copied is one of the copies.
type copied struct {
	path   string
	schema int64
	at     string
}

func (db *DB) backups() string { return filepath.Join(filepath.Dir(db.path), store.BackupsFolder) }

// backup copies the database as it is, whole or not at all, and returns the copy's path.
func (db *DB) backup(ctx context.Context, schema int64) (string, error) {
	path := filepath.Join(db.backups(), fmt.Sprintf("sallyport-schema%d-%s.db", schema, time.Now().UTC().Format(backupTime)))
	if err := copyTo(ctx, db.ops, "backup", db.pool, path); err != nil {
		return "", err
	}
	return path, db.ops.Do("backup:prune", func() error { return db.prune() })
}

func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return err
}

// prune removes all but the newest copy of each schema, and what a crash left half written.
// Nothing else that lies in the folder is touched.
func (db *DB) prune() error {
	var half []string
	for _, name := range []string{"sallyport-schema*.db.new", filepath.Base(whole.Fresh("sallyport-schema*.db*"))} { // the first: of an older sallyport
		found, err := filepath.Glob(filepath.Join(escapeGlob(db.backups()), name))
		if err != nil {
			return err
		}
		half = append(half, found...)
	}
	for _, path := range half {
		if err := absent(os.Remove(path)); err != nil {
			return err
		}
	}
	all, err := db.copies()
	kept := map[int64]bool{}
	for _, c := range all {
		if !kept[c.schema] && len(kept) < backupsMax {
			kept[c.schema] = true
			continue
		}
		err = errors.Join(err, absent(os.Remove(c.path)))
	}
	return err
}

var globbed = pattern.Of(`[\[\]*?\\]`)

// escapeGlob makes a path match itself.
func escapeGlob(path string) string { return globbed().ReplaceAllString(path, `\$0`) }

// copies returns the copies, newest first.
func (db *DB) copies() (all []copied, err error) {
	entries, err := os.ReadDir(db.backups())
	if err != nil {
		return nil, absent(err)
	}
	for _, e := range entries {
		if m := backupName().FindStringSubmatch(e.Name()); m != nil && e.Type().IsRegular() {
			schema, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				continue // the pattern allows none
			}
			all = append(all, copied{filepath.Join(db.backups(), e.Name()), schema, m[2]})
		}
	}
	slices.SortFunc(all, func(a, b copied) int { return cmp.Compare(b.at, a.at) })
	return all, nil
}

// lastBackup is the newest copy that a program which knows schema can read; "" if there is none.
func (db *DB) lastBackup(schema int64) string {
	all, err := db.copies()
	if err != nil {
		return ""
	}
	for _, c := range all {
		if c.schema <= schema {
			return c.path
		}
	}
	return ""
}

// fallBack makes the database what it was before migrations of which one failed. What went
// wrong is cause; the error says too where the copy is and what a person can do.
func (db *DB) fallBack(ctx context.Context, path string, schema int64, cause error) error {
	if path == "" {
		return cause // there was nothing to lose
	}
	cause = explain(db.path, cause)
	now, err := db.version(ctx)
	if err == nil && now != schema { // a migration that fails undoes itself; those before it do not
		err = db.ops.Do("backup:restore", func() error { return overlay(ctx, db.path, path) })
	}
	if err != nil {
		return problem.Errorf(problem.Unavailable,
			fmt.Sprintf("cp %s %s && rm -f %s %s", inert.Path(path), inert.Path(db.path), inert.Path(db.path+"-wal"), inert.Path(db.path+"-shm")),
			"%w; sallyport could not put the database back either (%w); its copy from before is %q", cause, err, path)
	}
	return problem.Errorf(problem.Unavailable, "sallyport version",
		"%w; the database is as it was, and so is its copy %q: run the version that you had before", cause, path)
}
