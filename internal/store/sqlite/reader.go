package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sallyport/internal/store"
)

// readersMax is how many reads run at once; one more waits.
const readersMax = 4

// readers are the connections that cannot write. Each is lent to one read at a time; the one that came back last goes first, so that few
// are warm where few read.
type readers struct {
	places chan struct{} // holds one token for each that is lent
	mu     sync.Mutex
	idle   []*statement
	closed bool
}

// newReaders opens every connection and has it read once.
func (db *DB) newReaders(ctx context.Context) (*readers, error) {
	r := &readers{places: make(chan struct{}, readersMax)}
	for range readersMax {
		conn, err := db.reads.Conn(ctx)
		if err != nil {
			return nil, err
		}
		var n int
		if err := conn.QueryRowContext(ctx, `SELECT count(*) FROM counter`).Scan(&n); err != nil {
			return nil, err
		}
		r.idle = append(r.idle, newStatement(conn, true))
	}
	return r, nil
}

// lend gives a connection to who asks, once one is free.
func (r *readers) lend(ctx context.Context) (*statement, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case r.places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		<-r.places
		return nil, errClosed
	}
	last := len(r.idle) - 1
	s := r.idle[last]
	r.idle = r.idle[:last]
	return s, nil
}

// takeBack ends what a read has open.
func (r *readers) takeBack(s *statement) {
	_ = s.plain(`ROLLBACK`) // nothing was written
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = s.close() // only read
	} else {
		r.idle = append(r.idle, s)
	}
	<-r.places
}

// close closes the connections: those that are lent, when they come back.
func (r *readers) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var errs []error
	for _, s := range r.idle {
		errs = append(errs, s.close())
	}
	r.idle = nil
	return errors.Join(errs...)
}

// Read runs do on a consistent snapshot. See store.DB.
func (db *DB) Read(ctx context.Context, do func(store.Tx) error) error {
	select {
	case <-db.closing:
		return errClosed
	case <-db.ended:
		return errClosed
	default:
	}
	snapshot, err := db.readers.lend(ctx)
	if err != nil {
		return fmt.Errorf("read database: %w", err)
	}
	defer db.readers.takeBack(snapshot)
	if err := snapshot.plain(`BEGIN`); err != nil {
		return fmt.Errorf("read database: %w", explain(db.path, err))
	}
	return do(newTx(&queries{run: snapshot, path: db.path, readOnly: true}))
}
