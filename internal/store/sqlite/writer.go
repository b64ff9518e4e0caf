package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/chat/message"
	"sallyport/internal/store"
)

// groupMax is how many callers share one commit at most, so that the first of them has its answer in time.
const groupMax = 256

var (
	errClosed = problem.New(problem.Unavailable, "the database is closed")
	errLost   = problem.New(problem.Internal, "the database's writer ended in the middle of a commit")
)

// call is one caller of InTx on its way through the writer.
type call struct {
	ctx    context.Context
	turn   chan error    // from the writer: nil = run, in a fresh savepoint; else why not
	ran    chan *queries // to the writer: what it did, or nil = undo it
	did    *queries      // of the writer: what has to be on the disk for the answer
	answer chan answer   // from the writer, after the commit; holds one
}

type answer struct {
	err   error
	panic any // what an operation panicked with: the caller goes down with it
}

// InTx runs do in the caller's goroutine when its turn comes, and returns once the
// transaction is on the disk. See store.DB. do may not call InTx.
//
// If ctx ends before the turn, do does not run. After do has run, the outcome is
// waited for whatever ctx says: a caller always learns what became of its work.
func (db *DB) InTx(ctx context.Context, do func(store.Tx) error) error {
	c := &call{ctx: ctx, turn: make(chan error), ran: make(chan *queries), answer: make(chan answer, 1)}
	select {
	case <-db.closing: // also when the queue would take it
		return errClosed
	default:
	}
	select {
	case db.queue <- c:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-db.closing:
		return errClosed
	case <-db.ended:
		return errClosed
	}
	if err := <-c.turn; err != nil {
		return err
	}
	if err := db.take(c, do); err != nil {
		return err
	}
	a := db.await(c)
	if a.panic != nil {
		panic(a.panic)
	}
	return a.err
}

// await returns the writer's answer, or errLost if the writer ended in the middle of a commit.
func (db *DB) await(c *call) answer {
	select {
	case a := <-c.answer:
		return a
	case <-db.ended:
	}
	select {
	case a := <-c.answer:
		return a
	default:
		return answer{err: errLost}
	}
}

// take runs do and tells the writer what became of it, also when do panics or ends its goroutine.
func (db *DB) take(c *call, do func(store.Tx) error) (err error) {
	q := &queries{run: db.writer, path: db.path}
	var done *queries
	defer func() {
		q.over = true
		c.ran <- done
	}()
	if err = do(newTx(q)); err == nil {
		err = q.broken // do may have ignored it, but its work is lost
	}
	if err == nil {
		done = q
	}
	return err
}

// run is the writer: it ends with Close, or when an operation panics.
func (db *DB) run() {
	defer close(db.ended)
	for {
		select {
		case <-db.closing:
			return
		case first := <-db.queue:
			if !db.group(first) {
				db.shutFile.Do(func() { _ = db.drop() }) // power is gone: nothing more is done to the disk
				return
			}
		}
	}
}

// group serves the first caller and all who wait meanwhile in one transaction. It
// returns false if an operation panicked.
func (db *DB) group(first *call) bool {
	if err := db.writer.plain(`BEGIN IMMEDIATE`); err != nil {
		first.turn <- fmt.Errorf("begin transaction: %w", explain(db.path, err))
		return true
	}
	var waiting []*call
	var ops []string
	var mark audit.Mark
	for c, more := first, true; more; {
		q, err := db.serve(c)
		if q != nil {
			c.did = q
			waiting = append(waiting, c)
			if q.mark.Seq > 0 {
				mark = q.mark
			}
			if op := q.op(); op != "" {
				ops = append(ops, op)
			}
		}
		if err != nil { // the transaction is gone, and with it everybody's work
			return db.finish(waiting, nil, mark, err)
		}
		if len(waiting) == groupMax {
			break
		}
		select {
		case c = <-db.queue:
		default:
			more = false
		}
	}
	return db.finish(waiting, ops, mark, nil)
}

// serve gives one caller its turn in a savepoint. It returns what the caller did, nil if that
// is undone and the caller knows. An error means that the whole transaction is lost.
func (db *DB) serve(c *call) (*queries, error) {
	if c.ctx.Err() != nil {
		c.turn <- context.Cause(c.ctx)
		return nil, nil
	}
	if err := db.writer.plain(`SAVEPOINT caller`); err != nil {
		c.turn <- fmt.Errorf("begin transaction: %w", explain(db.path, err))
		return nil, err
	}
	c.turn <- nil
	q := <-c.ran
	if q == nil {
		if err := db.writer.plain(`ROLLBACK TO caller`); err != nil {
			return nil, err
		}
	}
	return q, db.writer.plain(`RELEASE caller`)
}

// finish commits, or rolls back if failed says why, and answers everybody. A
// transaction that wrote nothing is no operation.
func (db *DB) finish(waiting []*call, ops []string, mark audit.Mark, failed error) bool {
	a := answer{err: failed}
	switch {
	case failed != nil || len(ops) == 0:
		_ = db.writer.plain(`ROLLBACK`) // fails if SQLite has done it already
	default:
		a = db.commit(name(ops), mark)
	}
	if a.err != nil {
		a.err = fmt.Errorf("commit: %w", explain(db.path, a.err))
	}
	for _, c := range waiting {
		if a.err == nil && a.panic == nil {
			db.tell(c.did)
		}
		c.answer <- a
	}
	return a.panic == nil
}

// Hear has hear called after each transaction that stored or moved messages. See store.DB.
func (db *DB) Hear(hear func(message.Rows)) {
	db.hearing.Lock()
	defer db.hearing.Unlock()
	db.ears = append(db.ears, hear)
}

// tell calls what one caller's work, which is on the disk, is to be followed by.
func (db *DB) tell(did *queries) {
	if len(did.rows.Ins)+len(did.rows.Outs) > 0 {
		db.hearing.Lock()
		ears := db.ears
		db.hearing.Unlock()
		for _, hear := range ears {
			hear(did.rows)
		}
	}
	for _, do := range did.after {
		do()
	}
}

// commit commits, then writes down how far the audit log has come.
func (db *DB) commit(op string, mark audit.Mark) (a answer) {
	defer func() {
		a.panic = recover()
		if a.err != nil || a.panic != nil {
			_ = db.writer.plain(`ROLLBACK`) // fails if SQLite has done it already
		}
	}()
	a.err = db.ops.Do(op, func() error {
		if err := db.writer.plain(`COMMIT`); err != nil {
			return err
		}
		db.noteHead(mark)
		return nil
	})
	return a
}

// name returns the operation's name: `db:<verb>`, or `db:<verb>+<verb>` if several verbs were written in this
// transaction, whoever wrote them. Where they are none or very many it is `db:commit`.
func name(ops []string) string {
	verbs := make([]string, len(ops))
	for i, op := range ops {
		verbs[i] = fmt.Sprintf("%.40s", strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-':
				return r
			}
			return '_'
		}, op))
	}

	slices.Sort(verbs)
	verbs = slices.Compact(verbs)
	if len(verbs) == 0 || len(verbs) > verbsNamed {
		return "db:commit"
	}
	return "db:" + strings.Join(verbs, "+")
}

// verbsNamed is how many verbs a commit is named by.
const verbsNamed = 8
