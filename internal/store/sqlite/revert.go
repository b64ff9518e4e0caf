package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/whole"
)

// Reverted is what became of a database that went back to the schema of a snapshot.
type Reverted struct {
	Done      bool           // false: it had that schema already, and was left as it is
	Carried   map[string]int // rows that were written since the snapshot and are kept, by table
	Elsewhere map[string]int // rows that were written since in other tables, and are as in the snapshot, by table
	Left      []string       // rows that could not be kept, and why
	Unread    string         // where the file lies now that could not be read: it alone has what was written since the snapshot. "" = it was read, or Lost
	Lost      bool           // there was no file any more; so all that was written since the snapshot is gone
}

// unread begins the end of the name of a file that could not be read; the time follows.
const unread = ".unread-"

// Revert brings the database at live, which nobody has open, back to the schema and the rows of a snapshot, and keeps what a quiet host may
// write since: messages, deliveries, answers, audit entries and usage, by the columns that the snapshot has. It is for a program that does
// not know live's schema. A database of the snapshot's schema is left alone, so a second time does nothing.
//
// What is to be is made aside, and laid over live in one transaction: never by rename, for live's log beside another file would bring the
// later rows back. Only a file that cannot be read goes aside with its log, and the snapshot takes its place. Its operations are revert:copy,
// revert:carry, revert:lay, revert:aside, revert:place and revert:clear; a crash at any of them leaves the one or the other to the next try.
//
// Errors: a snapshot that is not there, or cannot be read; then nothing was done.
func Revert(ctx context.Context, live, snapshot string, ops disk.Ops) (Reverted, error) {
	done, err := (&reverting{live: live, snapshot: snapshot, aside: whole.Fresh(live), ops: ops}).run(ctx)
	if err != nil {
		return Reverted{}, fmt.Errorf("bring the database %q back to %q: %w", live, snapshot, explain(live, err))
	}
	return done, nil
}

type reverting struct {
	live, snapshot string
	aside          string // what is to be
	ops            disk.Ops
}

func (r *reverting) run(ctx context.Context) (done Reverted, err error) {
	want, err := shape(ctx, r.snapshot, "ro")
	if err != nil {
		return done, fmt.Errorf("read the snapshot: %w", err)
	}
	is, unreadable := shape(ctx, r.live, "rw") // what a crash left half written is mended
	if unreadable != nil && machines(unreadable) {
		return done, unreadable
	}
	if unreadable == nil && is[len(is)-1] != want[len(want)-1] {
		unreadable = problem.New(problem.Unavailable, "its pages have another size")
	}
	if unreadable == nil && slices.Equal(is, want) {
		return done, r.ops.Do("revert:clear", func() error { return drop(r.aside) })
	}
	done.Done = true
	if err := r.ops.Do("revert:copy", func() error { return r.copy(ctx) }); err != nil {
		return done, err
	}
	if unreadable == nil {
		var carried error
		err := r.ops.Do("revert:carry", func() error { carried = r.carry(ctx, &done); return carried })
		switch {
		case err == nil:
		case carried != nil && theirs(ctx, carried):
			unreadable = err
		default:
			return done, err
		}
	}
	if unreadable != nil {
		return r.replace(ctx, unreadable)
	}
	if err := r.ops.Do("revert:lay", func() error { return overlay(ctx, r.live, r.aside) }); err != nil {
		return done, err
	}
	return done, r.ops.Do("revert:clear", func() error { return drop(r.aside) })
}

// shape is a database's schema, line by line, and last the size of its pages; an error says that it is none, is damaged, or is not there.
func shape(ctx context.Context, path, mode string) (lines []string, err error) {
	if _, err := os.Lstat(path); err != nil {
		return nil, err // to open it would make one
	}
	err = withFile(path, mode, append(slices.Clone(copying), "ignore_check_constraints(1)"), func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // read only
		if check, err := column[string](ctx, tx, `PRAGMA quick_check(1)`); err != nil || !slices.Equal(check, []string{"ok"}) {
			return errors.Join(err, fmt.Errorf("it is damaged: %v", check))
		}
		if lines, err = column[string](ctx, tx, `SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1`); err != nil {
			return err
		}
		version, err := column[string](ctx, tx, `SELECT CAST(coalesce(max(version_id), 0) AS TEXT) FROM goose_db_version WHERE is_applied`)
		pages, err2 := column[string](ctx, tx, `SELECT CAST(page_size AS TEXT) FROM pragma_page_size`)
		lines = append(append(lines, version...), pages...)
		return errors.Join(err, err2)
	})
	return lines, err
}

// copy makes the snapshot a database of its own aside.
func (r *reverting) copy(ctx context.Context) error {
	if err := drop(r.aside); err != nil {
		return err
	}
	f, err := os.OpenFile(r.aside, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = withFile(r.snapshot, "ro", copying, func(db *sql.DB) error { _, err := db.ExecContext(ctx, `VACUUM INTO ?`, r.aside); return err })
	return errors.Join(err, f.Close())
}

// replace puts the snapshot where a file that cannot be read was, which is kept beside it with all that belongs to it. Its main file goes
// first: as long as it is there, what is beside belongs to it; and the snapshot comes once nothing is.
func (r *reverting) replace(ctx context.Context, why error) (done Reverted, err error) {
	folder := filepath.Dir(r.live)
	err = r.ops.Do("revert:copy", func() error { // without what was carried before it broke off
		if err := r.copy(ctx); err != nil {
			return err
		}
		return withFile(r.aside, "rw", alone, func(db *sql.DB) error {
			_, err := db.ExecContext(ctx, `DELETE FROM link_code`) // others may have read one that was used up since
			return err
		})
	})
	if err != nil {
		return done, err
	}
	to := ""
	err = r.ops.Do("revert:aside", func() error {
		if _, err := os.Lstat(r.live); err == nil {
			to = r.live + unread + time.Now().UTC().Format(backupTime)
			if err := os.Rename(r.live, to); err != nil {
				return err
			}
		} else if before, err := filepath.Glob(escapeGlob(r.live) + unread + "*Z"); err == nil && len(before) > 0 { // an earlier try came so far
			to = slices.Max(before)
		}
		for _, beside := range []string{"-wal", "-shm", "-journal"} {
			if to == "" {
				break
			}
			if err := absent(os.Rename(r.live+beside, to+beside)); err != nil {
				return err
			}
		}
		return whole.Sync(folder)
	})
	if err != nil {
		return done, err
	}
	err = r.ops.Do("revert:place", func() error {
		f, err := os.OpenFile(r.aside, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close(), os.Rename(r.aside, r.live)); err != nil {
			return err
		}
		return whole.Sync(folder)
	})
	return Reverted{Done: true, Unread: to, Lost: to == "", Left: []string{
		fmt.Sprintf("all that was written since the snapshot: %v", why),
		"link codes: whether one was used up cannot be known, so whoever waits for one needs a new one",
	}}, err
}
