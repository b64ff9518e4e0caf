package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
)

// way says what becomes of a column in a copy for a rehearsal.
type way string

const (
	stays   way = ""        // ids, digests, states, names of groups and channels, numbers and times
	xs      way = "xs"      // as many x; what begins with a scheme or a platform keeps that
	mask    way = "mask"    // x and a number, the same for the same text anywhere in the copy: what has to be told apart
	who     way = "who"     // platform:account; the account is masked. An account at the terminal is a uid, and stays
	account way = "account" // who, where the platform stands in a column beside it
	choice  way = "choice"  // key of an option; those of the host's own stay
	doc     way = "doc"     // JSON: the structure stays, and so do numbers, times, ids and digests
	empty   way = "empty"   // the smallest value there is
	none    way = "none"    // NULL
	sealed  way = "audited" // made anew, so that the chain holds
)

// blanks has every column of every table: a column that is added decides here whether a rehearsal of a new version, which nobody has
// approved yet, may read it. What a person, an agent or a platform wrote may not be.
var blanks = map[string]map[string]way{
	"answer": {"seq": stays, "question": stays, "person": stays, "identity": who, "actor": doc, "option": choice, "text": xs,
		"edit": stays, "via": xs, "at": stays},
	"approval": {"seq": stays, "id": stays, "question": stays, "change": stays, "proposal": stays, "message": xs, "unsigned": stays},
	"asked": {"seq": stays, "subject": stays, "host": mask, "port": stays, "method": mask, "route": mask, "verdict": stays,
		"why": mask, "count": stays, "first_at": stays, "last_at": stays},
	"audit": {"seq": stays, "at": stays, "actor_kind": stays, "actor_name": xs, "actor_uid": stays, "change": stays, "subject": mask,
		"verb": stays, "reason": xs,
		"digests": doc, "previous": sealed, "hash": sealed, "actor_person": stays, "actor_identity": who, "stored": sealed},
	"change": {"seq": stays, "id": stays, "state": stays, "top": xs, "request": doc, "base": stays, "uid": stays, "attempts": stays,
		"problem": stays, "reason": xs, "next": xs,
		"reverted_by": stays, "cancel": stays, "chosen": stays, "start_from": stays, "identity": stays, "resumes": stays,
		"rollbacks": stays, "created_at": stays, "moved_at": stays,
		"due_at": stays, "holder": stays, "fence": stays, "until_at": stays, "outcome": stays, "blocked": stays, "swap": doc, "swaps": stays},
	"channel": {"name": stays, "platform": stays, "settings": doc, "credential": xs, "cursor": empty, "added_at": stays},
	"chat": {"id": stays, "folder": stays, "conversation": stays, "thread": mask, "identity": stays, "agent": stays,
		"tree": stays, "turn": stays, "fence": stays, "tool": none, "created_at": stays},
	"checkpoint":   {"change": stays, "number": stays, "id": stays, "oid": stays, "status": stays, "cause": stays, "doc": doc},
	"conversation": {"id": stays, "platform": stays, "address": mask, "kind": stays, "name": xs, "created_at": stays, "policy": stays},
	"counter":      {"name": stays, "next": stays},
	"delivery": {"seq": stays, "out": stays, "channel": stays, "conversation": stays, "lane": stays, "status": stays, "pieces": stays,
		"tries": stays, "due_at": stays, "platform_id": xs,
		"reason": xs, "ended_at": stays, "told": stays},
	"goose_db_version": {"id": stays, "version_id": stays, "is_applied": stays, "tstamp": stays},
	"identity":         {"seq": stays, "platform": stays, "account": account, "person": stays, "label": xs, "direct": stays},
	"intake":           {"seq": stays, "conversation": stays, "platform_id": mask, "received_at": stays, "outcome": stays, "reason": xs, "times": stays},
	"landing":          {"seq": stays, "id": stays, "change": stays, "common_dir": mask, "state": stays, "ended_at": stays, "reason": xs, "doc": doc},
	"lease":            {"key": mask, "holder": stays, "fence": stays, "until_at": stays},
	"link_code":        {"hash": mask, "person": stays, "expires_at": stays},
	"message_in": {"seq": stays, "id": stays, "chat": stays, "intake": stays, "kind": stays, "trig": stays, "identity": who, "sender": xs,
		"text": xs, "reply_to": xs, "quote_from": xs,
		"quote": xs, "question": stays, "at": stays, "status": stays, "tries": stays, "due_at": stays, "fence": stays, "turn": stays,
		"reason": xs, "ended_at": stays, "task": stays,
		"recurrence": none, "first_turn": stays, "decides": none},
	"message_out": {"seq": stays, "id": stays, "chat": stays, "lane": stays, "turn": stays, "number": stays, "call": mask,
		"question": stays, "text": xs, "at": stays, "change": stays,
		"digits": stays, "delivered_at": stays, "card": stays, "conversation": stays},
	"pending":  {"question": stays, "kind": stays, "conversation": stays, "identity": who, "folder": stays, "sender": xs, "event": doc, "created_at": stays},
	"person":   {"id": stays, "name": xs, "gone": stays},
	"proposal": {"change": stays, "number": stays, "digest": stays, "doc": doc},
	"question": {"seq": stays, "id": stays, "kind": stays, "subject": stays, "card": doc, "digest": stays, "options": doc, "words": stays,
		"need": stays, "asked_at": stays,
		"outcome": choice, "answer": stays, "ended_at": stays, "reason": xs},
	"resident": {"folder": stays, "uid": stays},
	"role":     {"person": stays, "role": stays, "folder": stays},
	"session":  {"id": stays, "subject": stays, "attempt": stays, "started_at": stays, "doc": doc},
	"sticky":   {"conversation": stays, "thread": mask, "folder": stays},
	"subject":  {"id": stays},
	"trial": {"seq": stays, "change": stays, "landing": stays, "handshake_state": stays, "deadman_started_at": stays,
		"deadman_expires_at": stays, "actor": doc, "at": stays,
		"reason": xs, "doc": doc, "timed_out": stays},
	"trust": {"repository": mask, "digest": stays, "words": doc, "by_name": xs, "by_uid": stays, "at": stays},
	"usage": {"seq": stays, "subject": stays, "session": stays, "model": mask, "minute": stays, "requests": stays, "estimated": stays,
		"unpriced": stays, "input": stays,
		"cached": stays, "output": stays, "cost": stays},
	"wiring": {"conversation": stays, "folder": stays, "engage_mode": stays, "engage_pattern": xs, "sender_scope": stays,
		"ignored_message_policy": stays, "created_at": stays},
}

// Blank writes the database at from to the file at to, for a rehearsal of a new version: what a person, an agent or a platform wrote is
// overwritten with as many x, what has to be told apart with x and a number, and the audit's chain is made anew of what is left. Nothing
// of the overwritten is left in the file. Whoever has the database open goes on meanwhile. The file is there whole or not at all; one
// that was there goes. Its operations are blank:copy, blank:overwrite, blank:write, blank:commit and blank:clear.
//
// Until it is done a whole copy lies beside the database under a name that the sweep removes.
func Blank(ctx context.Context, from, to string, ops disk.Ops) (err error) {
	aside := ""
	err = ops.Do("blank:copy", func() error { aside, err = copyAside(ctx, from); return err })
	if err == nil {
		err = ops.Do("blank:overwrite", func() error { return overwrite(ctx, aside) })
	}
	if err == nil { // once more: so nothing is left between the rows
		err = withFile(aside, "ro", copying, func(db *sql.DB) error { return copyTo(ctx, ops, "blank", db, to) })
	}
	if aside != "" {
		err = errors.Join(err, ops.Do("blank:clear", func() error { return drop(aside) }))
	}
	if err != nil {
		return fmt.Errorf("make a blank copy of the database at %q: %w", to, explain(from, err))
	}
	return nil
}

// copyAside copies a database to a file of its own beside it.
func copyAside(ctx context.Context, from string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(from), ".new-blank-*.db") // 0600
	if err != nil {
		return "", err
	}
	err = withFile(from, "ro", copying, func(db *sql.DB) error { _, err := db.ExecContext(ctx, `VACUUM INTO ?`, f.Name()); return err })
	return f.Name(), errors.Join(err, f.Close())
}

// withFile has do work on one connection to the database at path.
func withFile(path, mode string, pragmas []string, do func(*sql.DB) error) (err error) {
	db, err := sql.Open("sqlite", source(path, mode, pragmas))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// alone are the settings of a connection to a copy that nobody else has open, and that is thrown away if its making fails.
var alone = []string{"journal_mode(OFF)", "synchronous(OFF)", "foreign_keys(0)", "temp_store(MEMORY)", "trusted_schema(0)"}

// overwrite blanks the rows of a copy.
func overwrite(ctx context.Context, path string) error {
	return withFile(path, "rw", alone, func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		run, end := beginMasks()
		defer end()
		err = withoutTriggers(ctx, tx, func() error {
			for _, table := range slices.Sorted(maps.Keys(blanks)) {
				if set := overwriting(blanks[table]); set != "" {
					if _, err := tx.ExecContext(ctx, `UPDATE `+quoted(table)+` SET `+set, sql.Named("run", run)); err != nil { //nolint:gosec // names of tables and columns, which the list above or the schema gives
						return fmt.Errorf("overwrite %s: %w", table, err)
					}
				}
			}
			return sealAnew(ctx, tx)
		})
		return errors.Join(err, commitUnless(err, tx))
	})
}

func commitUnless(err error, tx *sql.Tx) error {
	if err != nil {
		return nil
	}
	return tx.Commit()
}

// overwriting is what an UPDATE sets by a table's ways.
func overwriting(columns map[string]way) string {
	var set []string
	for _, c := range slices.Sorted(maps.Keys(columns)) {
		name := quoted(c)
		switch w := columns[c]; w {
		case stays, sealed:
		case none:
			set = append(set, name+` = NULL`)
		case empty:
			set = append(set, name+` = ''`)
		case account:
			set = append(set, name+` = CASE platform WHEN 'terminal' THEN account ELSE sallyport_blank(:run, 'mask', account) END`)
		default:
			set = append(set, fmt.Sprintf(`%s = sallyport_blank(:run, '%s', %s)`, name, w, name))
		}
	}
	return strings.Join(set, ", ")
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// withoutTriggers has do work on rows that triggers would keep as they are, or follow.
func withoutTriggers(ctx context.Context, tx *sql.Tx, do func() error) error {
	made, err := column[string](ctx, tx, `SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid`)
	if err != nil {
		return err
	}
	names, err := column[string](ctx, tx, `SELECT name FROM sqlite_master WHERE type = 'trigger'`)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := tx.ExecContext(ctx, `DROP TRIGGER `+quoted(name)); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	for _, text := range made {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// column reads one value of each row.
func column[T any](ctx context.Context, tx *sql.Tx, query string, args ...any) (all []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// sealAnew makes a chain of the audit's entries as they are now.
func sealAnew(ctx context.Context, tx *sql.Tx) error {
	last := audit.Entry{}
	for {
		var e audit.Entry
		err := entry(tx.QueryRowContext(ctx, `SELECT `+entryColumns+` FROM audit WHERE seq > ? ORDER BY seq LIMIT 1`, last.Seq), &e)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		e.Previous = last.Hash
		e = e.Seal()
		if _, err := tx.ExecContext(ctx, `UPDATE audit SET previous = ?, hash = ?, stored = ? WHERE seq = ?`, e.Previous, e.Hash, e.Stored, e.Seq); err != nil {
			return err
		}
		last = e
	}
}
