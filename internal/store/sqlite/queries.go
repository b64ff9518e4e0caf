package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
)

// queries run one caller's part of a transaction, for every noun. They are good until the closure that was given the
// transaction returns.
type queries struct {
	run      runner
	path     string
	readOnly bool
	over     bool       // the closure has returned
	broken   error      // why the whole transaction is lost; nothing may follow
	wrote    string     // what was written first, in one word; "" = nothing
	verb     string     // of the first audit entry, which says it better
	mark     audit.Mark // of the last audit entry; zero = none
	rows     message.Rows
	after    []func()
}

// After has do called once the transaction is on the disk.
func (q *queries) After(do func()) { q.after = append(q.after, do) }

// op returns the word for what this caller wrote, "" if nothing.
func (q *queries) op() string {
	if q.verb != "" {
		return q.verb
	}
	return q.wrote
}

// usable returns why q can take no statement.
func (q *queries) usable() error {
	if q.over {
		return problem.New(problem.Internal, "a transaction was used after it had ended")
	}
	return q.broken
}

// fault remembers an error after which nothing of this transaction can stay.
func (q *queries) fault(err error) error {
	if err == nil {
		return nil
	}
	if lost(err) {
		err = explain(q.path, err)
		q.broken = err
	}
	return err
}

// write runs a statement that changes rows and returns how many it changed; what names it in one word.
func (q *queries) write(ctx context.Context, what, query string, args ...any) (int64, error) {
	if err := q.writable(what); err != nil {
		return 0, err
	}
	result, err := q.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, q.fault(err)
	}
	n, err := result.RowsAffected()
	if n > 0 {
		q.note(what)
	}
	return n, err
}

// writable returns why q can take no statement that writes.
func (q *queries) writable(what string) error {
	if q.readOnly {
		return problem.Errorf(problem.Internal, "", "%s was tried in a transaction that only reads", what)
	}
	return q.usable()
}

func (q *queries) note(what string) {
	if q.wrote == "" {
		q.wrote = what
	}
}

// one scans the only row of a query; false if there is none.
func (q *queries) one(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	if err := q.usable(); err != nil {
		return false, err
	}
	err := q.run.QueryRowContext(ctx, query, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, q.fault(err)
}

// scanner is a row to read from.
type scanner interface{ Scan(into ...any) error }

// each calls scan for every row of a query.
func (q *queries) each(ctx context.Context, scan func(scanner) error, query string, args ...any) error {
	if err := q.usable(); err != nil {
		return err
	}
	rows, err := q.run.QueryContext(ctx, query, args...)
	if err != nil {
		return q.fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return q.fault(err)
		}
	}
	return q.fault(rows.Err())
}

// rows returns what read makes of each row of a query; none if one cannot be read.
func rows[T any](ctx context.Context, q *queries, read func(scanner, *T) error, query string, args ...any) ([]T, error) {
	var all []T
	err := q.each(ctx, func(row scanner) error {
		var one T
		if err := read(row, &one); err != nil {
			return err
		}
		all = append(all, one)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// value reads a row of one column.
func value[T any](row scanner, v *T) error { return row.Scan(v) }

// docs reads a column of JSON documents.
func docs[T any](ctx context.Context, q *queries, query string, args ...any) ([]T, error) {
	return rows(ctx, q, func(row scanner, doc *T) error {
		var raw string
		err := row.Scan(&raw)
		if err == nil {
			*doc, err = decode[T](raw)
		}
		return err
	}, query, args...)
}

// counts reads rows of a value and its number.
func counts[T comparable](ctx context.Context, q *queries, query string, args ...any) (map[T]int, error) {
	all := map[T]int{}
	err := q.each(ctx, func(row scanner) error {
		var of T
		var n int
		err := row.Scan(&of, &n)
		all[of] = n
		return err
	}, query, args...)
	return all, err
}

// firstOf returns the first of what a query found; false if that is nothing.
func firstOf[T any](all []T, err error) (first T, found bool, _ error) {
	if err != nil || len(all) == 0 {
		return first, false, err
	}
	return all[0], true, nil
}

// doing adds to an error what was being done; nil stays nil.
func doing(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}
