package git

import (
	"context"
	"sync"
	"time"
)

const (
	readersMax     = 24               // processes that wait, of all repositories together
	readersPerRepo = 2                // of one repository
	readersIdle    = 20 * time.Second // how long one waits to be asked again
	readersLook    = 5 * time.Second
)

// Readers keeps the processes that read objects between one question and the next, so that a step does not pay for a
// process each time it looks at a file. Each is asked by one goroutine at a time, runs as the user and with the hardening
// of any other, and is the same repository's and the same user's the next time.
//
// A process that waits is used again only while its repository borrows from the same ones as when the process began, and
// all packs are still there. It reads refs, new packs and loose objects as they are when it is asked. One that has been
// asked and has not answered to the end is never used again; that is what the end of a context does to it.
//
// The owner runs it. Until then, and without any, nothing but the number of those that wait is bounded.
type Readers struct {
	mu    sync.Mutex
	idle  map[place][]waiting
	count int
	ended bool
	looks map[lookedAt]look // configurations that were read
}

// place is one repository as one user.
type place struct {
	path     string
	uid, gid uint32
}

type waiting struct {
	*process
	since time.Time
}

type readersKey struct{}

// In returns a context in which repositories are read through r. A Dir is a value that each step makes for itself of what a row
// says; the context is what all of them have from the daemon.
func (r *Readers) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, readersKey{}, r)
}

func readersOf(ctx context.Context) *Readers {
	r, _ := ctx.Value(readersKey{}).(*Readers)
	return r
}

// Run ends what waits too long, and all that waits once ctx ends. It returns nil then.
func (r *Readers) Run(ctx context.Context) error {
	tick := time.NewTicker(readersLook)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			r.sweepIdle(now)
		case <-ctx.Done():
			r.mu.Lock()
			r.ended = true
			r.mu.Unlock()
			r.sweep(func(waiting) bool { return true })
			return nil
		}
	}
}

func (r *Readers) sweepIdle(now time.Time) {
	r.sweep(func(w waiting) bool { return now.Sub(w.since) >= readersIdle })
}

// sweep ends those that wait and are old.
func (r *Readers) sweep(old func(waiting) bool) {
	r.mu.Lock()
	var gone []waiting
	for at, list := range r.idle {
		var stay []waiting
		for _, w := range list {
			if old(w) {
				gone = append(gone, w)
			} else {
				stay = append(stay, w)
			}
		}
		if r.idle[at] = stay; len(stay) == 0 {
			delete(r.idle, at)
		}
	}
	r.count -= len(gone)
	r.mu.Unlock()
	for _, w := range gone {
		_, _ = w.end(true)
	}
}

func (d Dir) place() place {
	at := place{path: d.Path}
	if c := d.credential(); c != nil {
		at.uid, at.gid = c.Uid, c.Gid
	}
	return at
}

// take returns a process that waits for d, nil if none does that still stands on the same ground.
func (r *Readers) take(d Dir) *process {
	at := d.place()
	for {
		r.mu.Lock()
		list := r.idle[at]
		if len(list) == 0 {
			r.mu.Unlock()
			return nil
		}
		w := list[len(list)-1]
		if r.idle[at] = list[:len(list)-1]; len(list) == 1 {
			delete(r.idle, at)
		}
		r.count--
		r.mu.Unlock()
		if w.ground.holds(d) {
			return w.process
		}
		_, _ = w.end(true)
	}
}

// give lets a process wait, or ends it where there are enough.
func (r *Readers) give(d Dir, p *process) {
	at := d.place()
	r.mu.Lock()
	if p.ground == nil || p.complains() || r.ended || r.count >= readersMax || len(r.idle[at]) >= readersPerRepo {
		r.mu.Unlock()
		_, _ = p.end(true)
		return
	}
	if r.idle == nil {
		r.idle = map[place][]waiting{}
	}
	r.idle[at] = append(r.idle[at], waiting{p, time.Now()})
	r.count++
	r.mu.Unlock()
}
