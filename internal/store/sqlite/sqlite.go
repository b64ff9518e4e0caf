// Package sqlite keeps a home's rows in one SQLite file.
//
// One writer goroutine owns the only connection that writes. It gives the waiting
// callers their turn one after the other inside one transaction, each in a
// savepoint of its own, commits once and answers them all: under load the cost of
// reaching the disk is shared. Readers have connections of their own that cannot write.
//
// Whatever a closure does stays in memory until COMMIT: the cache never spills, and
// temporary tables and savepoint journals have no files. So the one named
// operation around COMMIT, with the line of the audit's head record behind it, is all
// that a transaction does to the disk.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver, pure Go

	"sallyport/internal/base/audit"
	"sallyport/internal/base/disk"
	"sallyport/internal/chat/message"
	"sallyport/internal/store"
)

// DB is an open database. Safe for concurrent use.
type DB struct {
	path   string
	ops    disk.Ops
	schema fs.FS  // migrations
	newest string // what they come to, for a file that is empty; "" = climb

	pool    *sql.DB    // one connection
	writer  *statement // on that connection; only whose turn it is uses it
	reads   *sql.DB
	readers *readers    // on its connections
	head    *audit.Head // written after each commit, by whose turn it is

	queue   chan *call
	closing chan struct{} // closed once Close was called
	ended   chan struct{} // closed once the writer goroutine is gone

	hearing sync.Mutex
	ears    []func(message.Rows)

	shut     sync.Once // closes closing
	shutFile sync.Once
}

var _ store.DB = (*DB)(nil)

// Open opens the database at path, makes it and its folder if they are absent, and brings
// its schema up to date. The caller owns the DB, and with it one goroutine, which
// Close ends and waits for. ctx holds for opening only.
//
// Errors: problem.Unavailable if the schema is newer than this program, if the folder
// cannot be written, or if the disk is full; each says the way out.
func Open(ctx context.Context, path string, ops disk.Ops) (store.DB, error) {
	return openWith(ctx, path, ops, migrations(), newest)
}

func openWith(ctx context.Context, path string, ops disk.Ops, schema fs.FS, newest string) (store.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := &DB{path: path, ops: ops, schema: schema, newest: newest, queue: make(chan *call), closing: make(chan struct{}), ended: make(chan struct{})}
	opened := false
	defer func() { // also when an operation panics
		if !opened {
			_ = db.drop()
		}
	}()
	if err := db.open(ctx); err != nil {
		return nil, explain(path, err)
	}
	opened = true
	go db.run()
	return db, nil
}

// open leaves the writer's connection and every reader's connection open: from here on
// none of them creates a file outside a named operation.
func (db *DB) open(ctx context.Context) error {
	if err := db.ops.Do("db:create", func() error { return create(db.path) }); err != nil {
		return err
	}
	var err error
	if db.pool, err = sql.Open("sqlite", source(db.path, "rw", writing)); err != nil {
		return err
	}
	db.pool.SetMaxOpenConns(1)
	var found int64
	err = db.ops.Do("db:open", func() error { // the first read makes the shared memory, and mends after a crash
		found, err = db.version(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if err := db.migrate(ctx, found); err != nil {
		return err
	}
	if err := db.ops.Do("db:head", func() error { return db.catchUp(ctx) }); err != nil {
		return err
	}
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	db.writer = newStatement(conn, false)
	if db.reads, err = sql.Open("sqlite", source(db.path, "ro", reading)); err != nil {
		return err
	}
	return db.ops.Do("db:read", func() error {
		db.readers, err = db.newReaders(ctx)
		return err
	})
}

// create makes the folder 0700 and an empty file 0600; SQLite gives its WAL and
// shared-memory files the file's own mode. A folder that is there stays as it is.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	return file.Close()
}

// The settings of a connection. FULL: a commit is on the disk before it is answered.
var (
	writing = []string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"temp_store(MEMORY)", "cache_spill(0)", "trusted_schema(0)", "journal_size_limit(67108864)"}
	reading = []string{"busy_timeout(5000)", "query_only(1)", "temp_store(MEMORY)", "trusted_schema(0)"}
)

// Close ends the writer after the transaction that is under way, waits for it, and
// closes the file. Callers that still wait are refused. Calling it again does nothing.
func (db *DB) Close() error {
	db.shut.Do(func() { close(db.closing) })
	<-db.ended
	var err error
	db.shutFile.Do(func() {
		dropped := false
		defer func() { // an operation that panicked must not keep the file open
			if !dropped {
				_ = db.drop()
			}
		}()
		err = db.ops.Do("db:close", func() error { dropped = true; return db.drop() })
	})
	return err
}

// drop closes what is open; readers first, so that the writer's is the last connection
// and folds the log back into the file.
func (db *DB) drop() error {
	var errs []error
	if db.readers != nil {
		errs = append(errs, db.readers.close())
	}
	if db.reads != nil {
		errs = append(errs, db.reads.Close())
	}
	if db.writer != nil {
		errs = append(errs, db.writer.close())
	}
	if db.pool != nil {
		errs = append(errs, db.pool.Close())
	}
	return errors.Join(append(errs, db.head.Close())...)
}
