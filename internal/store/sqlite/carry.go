package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	lib "modernc.org/sqlite/lib"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
)

// unreadableFile says that what went wrong lies in the database that is read, not in the one that is made.
type unreadableFile struct{ error }

func (u *unreadableFile) Unwrap() error { return u.error }

// machines reports whether an error is the machine's or the caller's, and no fault of the file that is read.
func machines(err error) bool {
	switch primary(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_NOMEM, lib.SQLITE_INTERRUPT, lib.SQLITE_FULL, lib.SQLITE_PERM, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fs.ErrPermission)
}

// theirs reports whether what went wrong lies in what a trial has written: it would again at every try, and a trial must not choose whether
// there is a way back.
func theirs(ctx context.Context, err error) bool {
	var broken *unreadableFile
	return errors.As(err, &broken) || ctx.Err() == nil && !machines(err) && !lost(err)
}

// broken marks an error that lies in the file that is read.
func broken(err error) error {
	if err == nil || machines(err) {
		return err
	}
	return &unreadableFile{err}
}

// carried are the tables whose rows a quiet host may write, with what a row is known by: what came in, what is said, what leaves, what people
// decide, what models used, and what those rows refer to. A migration may add columns to them, and change nothing else of them: see
// keepsCarried. The audit log, whose rows form a chain, comes after them.
var carried = []struct{ table, key string }{
	{"conversation", "id"}, {"subject", "id"}, {"chat", "id"}, {"intake", "seq"}, {"message_in", "seq"}, {"message_out", "seq"}, {"delivery", "seq"},
	{"change", "id"}, {"question", "seq"}, {"answer", "seq"}, {"approval", "seq"}, {"usage", "seq"},
}

// decided are the questions of changes whose rows did not follow from the answer as far as an old host would go on from: they wait again.
const decided = `SELECT t.question FROM trial.approval AS t JOIN trial.change AS now ON now.id = t.change JOIN main.change AS was ON was.id = t.change
	WHERE now.state <> was.state AND NOT (was.state = 'awaiting_approval' AND now.state IN ('landing', 'rejected'))`

// which are the rows of a table that are carried at all; a table that is not named here: all.
var which = map[string]string{
	"chat":     `l.id NOT IN (SELECT id FROM main.chat)`, // of the others the counters, see greatest
	"question": `l.id NOT IN (` + decided + `)`,
	"answer":   `l.question NOT IN (` + decided + `)`,
	"approval": `l.question NOT IN (` + decided + `)`,
	"change": `l.state IN ('landing', 'rejected') AND l.id IN (SELECT id FROM main.change WHERE state = 'awaiting_approval')
		AND l.id IN (SELECT a.change FROM trial.approval AS a JOIN trial.question AS q ON q.id = a.question JOIN main.question AS o ON o.id = q.id
			WHERE q.outcome IS NOT NULL AND o.outcome IS NULL)`,
}

// greatest are the counters that never go back: a number that was given once is not given again.
var greatest = []string{
	`UPDATE main.counter SET next = max(next, (SELECT next FROM trial.counter AS t WHERE t.name = counter.name)) WHERE name IN (SELECT name FROM trial.counter)`,
	`UPDATE main.chat SET (turn, fence) = (SELECT max(chat.turn, t.turn), max(chat.fence, t.fence) FROM trial.chat AS t WHERE t.id = chat.id) WHERE id IN (SELECT id FROM trial.chat)`,
	`UPDATE main.lease SET fence = max(fence, (SELECT fence FROM trial.lease AS t WHERE t.key = lease.key)) WHERE key IN (SELECT key FROM trial.lease)`,
	`UPDATE main.sqlite_sequence SET seq = max(seq, (SELECT seq FROM trial.sqlite_sequence AS t WHERE t.name = sqlite_sequence.name)) WHERE name IN (SELECT name FROM trial.sqlite_sequence)`,
}

// counted are the tables in which greatest writes.
var counted = []string{"counter", "chat", "lease"}

// carry adds to the copy of the snapshot what was written since.
func (r *reverting) carry(ctx context.Context, done *Reverted) error {
	done.Carried, done.Elsewhere, done.Left = map[string]int{}, map[string]int{}, nil
	return withFile(r.aside, "rw", append(slices.Clone(alone), "defer_foreign_keys(0)"), func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, `ATTACH ? AS trial`, source(r.live, "ro", nil)); err != nil {
			return broken(err)
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		c := &carrying{ctx, tx, done}
		err = withoutTriggers(ctx, tx, func() error {
			for _, t := range carried {
				if err := c.table(t.table, t.key); err != nil {
					return err
				}
			}
			for _, query := range greatest {
				if _, err := tx.ExecContext(ctx, query); err != nil {
					done.Left = append(done.Left, fmt.Sprintf("a counter: %v", err))
				}
			}
			return errors.Join(c.audit(), c.codes(), c.orphans(), c.elsewhere())
		})
		return errors.Join(err, commitUnless(err, tx))
	})
}

// carrying carries rows from the attached trial into main.
type carrying struct {
	ctx  context.Context
	tx   *sql.Tx
	done *Reverted
}

// columns are those that a table of the snapshot has and can be written.
func (c *carrying) columns(table string) ([]string, error) {
	all, err := column[string](c.ctx, c.tx, `SELECT name FROM pragma_table_xinfo(?, 'main') WHERE hidden = 0 ORDER BY cid`, table)
	for i := range all {
		all[i] = quoted(all[i])
	}
	return all, err
}

func list(prefix string, columns []string) string {
	return prefix + strings.Join(columns, ", "+prefix)
}

// table carries the rows of one table that are new, or are not as they were. One that the old schema does not take is left, and named.
func (c *carrying) table(table, key string) error {
	columns, err := c.columns(table)
	if err != nil {
		return err
	}
	only := which[table]
	if only == "" {
		only = "1"
	}
	keys, err := column[any](c.ctx, c.tx, fmt.Sprintf(`SELECT l.%[1]s FROM trial.%[2]s AS l WHERE %[3]s AND NOT EXISTS (SELECT 1 FROM main.%[2]s AS m WHERE m.%[1]s = l.%[1]s AND (%[4]s) IS (%[5]s)) ORDER BY 1`,
		key, table, only, list("m.", columns), list("l.", columns)))
	if err != nil {
		return c.unread(table, err)
	}
	var set []string
	for _, name := range columns {
		set = append(set, name+` = excluded.`+name)
	}
	insert := fmt.Sprintf(`INSERT INTO main.%[1]s (%[2]s) SELECT %[2]s FROM trial.%[1]s WHERE %[3]s = ? ON CONFLICT (%[3]s) DO UPDATE SET %[4]s`, table, list("", columns), key, strings.Join(set, ", ")) //nolint:gosec // names of tables and columns, which the list above or the schema gives
	for _, k := range keys {
		if _, err := c.tx.ExecContext(c.ctx, insert, k); err != nil {
			if lost(err) || c.ctx.Err() != nil {
				return err
			}
			c.done.Left = append(c.done.Left, fmt.Sprintf("%s %v: %v", table, k, err))
			continue
		}
		c.done.Carried[table]++
	}
	return nil
}

// unread tells a table that is not as it has to be from a file that cannot be read.
func (c *carrying) unread(table string, err error) error {
	if c.ctx.Err() != nil || machines(err) {
		return err
	}
	if primary(err) == lib.SQLITE_CORRUPT || primary(err) == lib.SQLITE_IOERR {
		return &unreadableFile{err}
	}
	c.done.Left = append(c.done.Left, fmt.Sprintf("all rows of %s: %v", table, err))
	return nil
}

// audit carries the entries behind the snapshot's last one, byte for byte, as far as they form a chain with it.
func (c *carrying) audit() error {
	columns, err := c.columns("audit")
	if err != nil {
		return err
	}
	var last audit.Mark
	err = c.tx.QueryRowContext(c.ctx, `SELECT seq, hash FROM main.audit ORDER BY seq DESC LIMIT 1`).Scan(&last.Seq, &last.Hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	seqs, err := column[int64](c.ctx, c.tx, `SELECT seq FROM trial.audit WHERE seq > ? ORDER BY seq`, last.Seq)
	if err != nil {
		return c.unread("audit", err)
	}
	insert := fmt.Sprintf(`INSERT INTO main.audit (%s) SELECT %[1]s FROM trial.audit WHERE seq = ?`, list("", columns)) //nolint:gosec // names of tables and columns, which the list above or the schema gives
	for i, seq := range seqs {
		var e audit.Entry
		err := entry(c.tx.QueryRowContext(c.ctx, `SELECT `+entryColumns+` FROM trial.audit WHERE seq = ?`, seq), &e)
		if err == nil && (e.Seq != last.Seq+1 || e.Previous != last.Hash || !e.Intact()) {
			err = problem.New(problem.Internal, "it does not follow from the one before")
		}
		if err == nil {
			_, err = c.tx.ExecContext(c.ctx, insert, seq)
		}
		if err != nil {
			if lost(err) {
				return c.unread("audit", err)
			}
			c.done.Left = append(c.done.Left, fmt.Sprintf("%d audit entries, from %d on: %v", len(seqs)-i, seq, err))
			return nil
		}
		last = audit.Mark{Seq: e.Seq, Hash: e.Hash}
		c.done.Carried["audit"]++
	}
	return nil
}

// codes takes the link codes away that were used up since: others may have read them. If that cannot be known, none is good any more.
func (c *carrying) codes() error {
	if there, err := c.columns("link_code"); err != nil || len(there) == 0 {
		return err
	}
	_, err := c.tx.ExecContext(c.ctx, `DELETE FROM main.link_code WHERE hash NOT IN (SELECT hash FROM trial.link_code)`)
	if err == nil || lost(err) || c.ctx.Err() != nil {
		return err
	}
	_, err = c.tx.ExecContext(c.ctx, `DELETE FROM main.link_code`)
	return err
}

// orphans removes rows that refer to what was not carried, and names them.
func (c *carrying) orphans() error {
	for range len(carried) + 1 {
		rows, err := column[string](c.ctx, c.tx, `SELECT DISTINCT "table" || ' ' || coalesce(rowid, '') FROM pragma_foreign_key_check`)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			table, rowid, _ := strings.Cut(row, " ")
			if _, err := c.tx.ExecContext(c.ctx, `DELETE FROM main.`+quoted(table)+` WHERE rowid = ?`, rowid); err != nil { //nolint:gosec // names of tables and columns, which the list above or the schema gives
				return err
			}
			c.done.Left = append(c.done.Left, fmt.Sprintf("%s %s: what it refers to is not in the snapshot", table, rowid))
			c.done.Carried[table]--
		}
	}
	return problem.New(problem.Internal, "rows refer to what is not there, again and again")
}

// elsewhere counts the rows that differ in the tables that are as in the snapshot. The trial's own row and its change's are no news.
func (c *carrying) elsewhere() error {
	tables, err := column[string](c.ctx, c.tx, `SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN ('goose_db_version', 'audit') ORDER BY name`)
	if err != nil {
		return err
	}
	const trials = `(SELECT change FROM main.trial WHERE handshake_state NOT IN ('confirmed', 'rolled_back'))`
	for _, table := range tables {
		if slices.Contains(counted, table) {
			continue
		}
		columns, err := c.columns(table)
		if err != nil {
			return err
		}
		but := ""
		switch table {
		case "change":
			but = ` WHERE id NOT IN ` + trials
		case "trial":
			but = ` WHERE change NOT IN ` + trials
		}
		n, err := column[int](c.ctx, c.tx, fmt.Sprintf(`SELECT count(*) FROM (SELECT %s FROM trial.%s%s EXCEPT SELECT %[1]s FROM main.%[2]s)`, list("", columns), quoted(table), but))
		if err != nil {
			left := c.done.Left
			if err := c.unread(table, err); err != nil {
				return err
			}
			c.done.Left = left // the newer schema has no such table; it is as in the snapshot
			continue
		}
		if n[0] > 0 {
			c.done.Elsewhere[table] = n[0]
		}
	}
	return nil
}
