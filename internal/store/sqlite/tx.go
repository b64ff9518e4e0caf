package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/store"
)

// tx is one caller's part of a transaction. It is good until the closure it was given to returns.
type tx struct {
	run      runner
	path     string
	readOnly bool
	over     bool       // the closure has returned
	broken   error      // why the whole transaction is lost; nothing may follow
	wrote    string     // what was written first, in one word; "" = nothing
	verb     string     // of the first audit entry, which says it better
	mark     audit.Mark // of the last audit entry; zero = none
}

var _ store.Tx = (*tx)(nil)

// op returns the word for what this caller wrote, "" if nothing.
func (t *tx) op() string {
	if t.verb != "" {
		return t.verb
	}
	return t.wrote
}

// usable returns why t can take no statement.
func (t *tx) usable() error {
	if t.over {
		return problem.New(problem.Internal, "a transaction was used after it had ended")
	}
	return t.broken
}

// fault remembers an error after which nothing of this transaction can stay.
func (t *tx) fault(err error) error {
	if err == nil {
		return nil
	}
	if lost(err) {
		err = explain(t.path, err)
		t.broken = err
	}
	return err
}

// write runs a statement that changes rows and returns how many it changed; what names it in one word.
func (t *tx) write(ctx context.Context, what, query string, args ...any) (int64, error) {
	if err := t.writable(what); err != nil {
		return 0, err
	}
	result, err := t.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, t.fault(err)
	}
	n, err := result.RowsAffected()
	if n > 0 {
		t.note(what)
	}
	return n, err
}

// writable returns why t can take no statement that writes.
func (t *tx) writable(what string) error {
	if t.readOnly {
		return problem.Errorf(problem.Internal, "", "%s was tried in a transaction that only reads", what)
	}
	return t.usable()
}

func (t *tx) note(what string) {
	if t.wrote == "" {
		t.wrote = what
	}
}

// one scans the only row of a query; false if there is none.
func (t *tx) one(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	if err := t.usable(); err != nil {
		return false, err
	}
	err := t.run.QueryRowContext(ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, t.fault(err)
}

// scanner is a row to read from.
type scanner interface{ Scan(into ...any) error }

// each calls scan for every row of a query.
func (t *tx) each(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	if err := t.usable(); err != nil {
		return err
	}
	rows, err := t.run.QueryContext(ctx, query, args...)
	if err != nil {
		return t.fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return t.fault(err)
		}
	}
	return t.fault(rows.Err())
}

// docs reads a column of JSON documents.
func docs[T any](ctx context.Context, t *tx, query string, args ...any) ([]T, error) {
	var all []T
	err := t.each(ctx, func(row scanner) error {
		var raw string
		if err := row.Scan(&raw); err != nil {
			return err
		}
		doc, err := decode[T](raw)
		all = append(all, doc)
		return err
	}, query, args...)
	return all, err
}
