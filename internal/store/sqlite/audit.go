package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/store"
)

// entries are the audit log.
type entries struct{ *queries }

// AppendEntry adds e behind the last entry. Its free text is made storable first: what is
// not UTF-8 is replaced, for an audit entry is kept in any case.
func (t entries) AppendEntry(ctx context.Context, e audit.Entry) error {
	what := fmt.Sprintf("append audit entry %q", e.Verb)
	for _, s := range []*string{&e.Actor.Name, &e.Actor.Identity, &e.Subject, &e.Reason} {
		*s = plain(*s)
	}
	e.At = e.At.UTC().Truncate(time.Millisecond)
	e.Seq, e.Previous = 1, ""
	var last int64
	ok, err := t.one(ctx, `SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1`, nil, &last, &e.Previous)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if ok {
		e.Seq = last + 1
	}
	digests, err := encode(e.Digests)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	e = e.Seal()
	_, err = t.write(ctx, "audit", `INSERT INTO audit (`+entryColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Seq, e.At.UnixMilli(), e.Actor.Kind, e.Actor.Name, e.Actor.UID, e.Actor.Person, e.Actor.Identity, e.Change, e.Subject, e.Verb,
		e.Reason, digests, e.Previous, e.Hash, e.Stored)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if t.verb == "" {
		t.verb = e.Verb
	}
	t.mark = audit.Mark{Seq: e.Seq, Hash: e.Hash}
	return nil
}

const entryColumns = `seq, at, actor_kind, actor_name, actor_uid, actor_person, actor_identity, change, subject, verb, reason, digests,
	previous, hash, stored`

// Entries returns entries after a sequence number, oldest first.
func (t entries) Entries(ctx context.Context, change string, after int64, limit int) ([]audit.Entry, error) {
	query, args := `SELECT `+entryColumns+` FROM audit WHERE seq > ?`, []any{after}
	if change != "" {
		query, args = query+` AND change = ?`, append(args, change)
	}
	if limit <= 0 {
		limit = 1000
	}
	all, err := rows(ctx, t.queries, entry, query+` ORDER BY seq LIMIT +?`, append(args, limit)...)
	return all, doing(err, "read the audit log")
}

// entry reads a row of entryColumns. Its number is set even if the rest cannot be read.
func entry(row scanner, e *audit.Entry) error {
	var at int64
	var digests string
	if err := row.Scan(&e.Seq, &at, &e.Actor.Kind, &e.Actor.Name, &e.Actor.UID, &e.Actor.Person, &e.Actor.Identity, &e.Change, &e.Subject,
		&e.Verb, &e.Reason, &digests, &e.Previous, &e.Hash, &e.Stored); err != nil {
		return err
	}
	e.At = time.UnixMilli(at).UTC()
	var err error
	e.Digests, err = decode[map[string]string](digests)
	return err
}

// VerifyAudit reads the whole log and holds it against the head record. See store.DB.
func (db *DB) VerifyAudit(ctx context.Context, expected *audit.Mark) (audit.Report, error) {
	// First the record, then the log: so the log has all that the record knows.
	marks, damaged, err := audit.ReadMarks(db.headPath())
	if err != nil {
		return audit.Report{}, err
	}
	v := audit.NewVerifier(marks, expected)
	if damaged > 0 {
		v.Fault(0, "line %d of the head record %q cannot be read", damaged, db.headPath())
	}
	err = db.Read(ctx, func(s store.Tx) error {
		t, ok := s.(*tx)
		if !ok {
			return problem.New(problem.Internal, "a transaction of another store")
		}
		return t.each(ctx, func(row scanner) error {
			var e audit.Entry
			if err := entry(row, &e); err != nil {
				v.Unreadable(e.Seq, err)
			} else {
				v.Add(e)
			}
			return nil
		}, `SELECT `+entryColumns+` FROM audit ORDER BY seq`)
	})
	if err != nil {
		return audit.Report{}, fmt.Errorf("read the audit log: %w", err)
	}
	return v.End(), nil
}

func (db *DB) headPath() string { return filepath.Join(filepath.Dir(db.path), audit.HeadName) }

// catchUp opens the head record and adds what a crash kept from it. A record that knows more
// than the log is left as it is: it is what VerifyAudit finds the loss by.
func (db *DB) catchUp(ctx context.Context) error {
	var err error
	if db.head, err = audit.OpenHead(db.headPath()); err != nil {
		return err
	}
	var last audit.Mark
	err = db.pool.QueryRowContext(ctx, `SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1`).Scan(&last.Seq, &last.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil || last.Seq <= db.head.Last().Seq {
		return err
	}
	return db.head.Note(last)
}

// noteHead adds the last entry of a commit to the head record. The commit stands whatever comes
// of it: a record that cannot be written now gets a later entry with the next one.
func (db *DB) noteHead(m audit.Mark) {
	if m.Seq > 0 {
		_ = db.head.Note(m)
	}
}
