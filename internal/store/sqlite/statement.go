package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// runner is what a transaction's queries run on: the writer's connection or a reader's snapshot.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// statement runs queries on one connection and compiles each text once. One user at a time, and no query within the rows of the same one.
// A number that bounds the rows is written `LIMIT +?`: of a bare one SQLite makes a plan for each value, and compiles the text each time.
//
// The writer's ignores that a context ends: to interrupt a statement that writes would roll back
// the whole transaction, and with it the work of every caller that shares it.
type statement struct {
	conn  *sql.Conn
	made  map[string]*sql.Stmt
	heeds bool // that a context ends
}

func newStatement(conn *sql.Conn, heeds bool) *statement {
	return &statement{conn: conn, made: map[string]*sql.Stmt{}, heeds: heeds}
}

func (s *statement) prepare(query string) (*sql.Stmt, error) {
	if stmt, ok := s.made[query]; ok {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s.made[query] = stmt
	return stmt, nil
}

// during is the context that a query runs under.
func (s *statement) during(ctx context.Context) context.Context {
	if s.heeds {
		return ctx
	}
	return context.Background()
}

func (s *statement) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := s.prepare(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(s.during(ctx), args...)
}

func (s *statement) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepare(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(s.during(ctx), args...)
}

func (s *statement) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := s.prepare(query)
	if err != nil {
		return s.conn.QueryRowContext(context.Background(), query, args...) // gives the same error
	}
	return stmt.QueryRowContext(s.during(ctx), args...)
}

// plain runs one of the fixed words that open and close a transaction.
func (s *statement) plain(query string) error {
	_, err := s.ExecContext(context.Background(), query)
	return err
}

func (s *statement) close() error {
	var errs []error
	for _, stmt := range s.made {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}
