package keeper

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/release"
)

// How patient a keeper is with its daemon.
const (
	readyMax  = 10 * time.Minute       // until it answers: it may have a large database to bring up to date
	silentMax = 3 * time.Minute        // between two beats
	hearMax   = 10 * time.Second       // more, for one that was said and not heard
	endMax    = 45 * time.Second       // from being asked to end until it has
	pauseMin  = time.Second            // before a second start in a row; doubles after each
	pauseMax  = time.Minute            //
	steady    = time.Minute            // a daemon that was up for so long is started again at once
	lookEvery = 500 * time.Millisecond // at the landings that are under way
	hungAfter = 5 * time.Second        // that a daemon which answers has after the deadline of a landing
)

// parts are what a keeper does its work with.
type parts struct {
	start func(Last) (child, error)
	late  late
	tell  func(format string, a ...any)
}

// late tells of deadlines that a daemon lets pass.
type late interface {
	// overdue says which one has passed, and that no daemon was ended for yet; "" = none.
	overdue() string
	// ended says that a daemon was ended for what is overdue.
	ended()
}

// outcome is how the time of one daemon went.
type outcome struct {
	exit
	asked bool          // it ended because somebody wanted that
	ready bool          // it has answered
	up    time.Duration // since it did
}

// keep has a daemon run until ctx ends or the daemon says that it was asked to stop, and returns the exit status for that.
//
// A daemon that ends unasked is started again, at once and then with longer and longer pauses, for ever. Only a keeper whose first
// daemon ends by itself before it ever answers ends with it: a person who has just typed `serve` is told why, and mends that.
func keep(ctx context.Context, p parts) (status int, err error) {
	last, answered, pause := Last{}, false, time.Duration(0)
	for {
		c, err := p.start(last)
		if damaged := new(release.Fault); err != nil && (!answered || errors.As(err, &damaged)) {
			return 1, err // only a person, or who starts serve again, brings the release back
		}
		got := outcome{exit: exit{status: -1, why: fmt.Sprint(err)}}
		if err == nil {
			got = attend(ctx, c, p)
		}
		answered = answered || got.ready
		switch {
		case got.asked || ctx.Err() != nil:
			return 0, nil
		case !answered && got.status > 0:
			return got.status, nil // it has said itself why
		}

		last = Last{Restarts: last.Restarts + 1, Why: got.why, At: time.Now().UTC()}
		if got.up >= steady {
			pause = 0
		}
		p.tell("the daemon is gone: %s; it is started again in %s", got.why, pause)
		select {
		case <-ctx.Done():
			return 0, nil
		case <-time.After(pause):
		}
		pause = min(max(2*pause, pauseMin), pauseMax)
	}
}

// attend waits for the end of a daemon. It ends one that does not answer in time, that falls silent, or that lets the deadline of a
// landing pass.
func attend(ctx context.Context, c child, p parts) (got outcome) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	patience := time.NewTimer(readyMax)
	defer patience.Stop()
	var since, lateSince time.Time
	words, asked, why, silent := c.words, ctx.Done(), "", false
	end := func(because string) {
		if why == "" {
			why = because
			c.kill()
		}
	}
	for {
		select {
		case <-asked:
			asked, got.asked = nil, true
			c.stop()
			patience.Reset(endMax)

		case word, ok := <-words:
			switch {
			case !ok:
				words = nil // the end of its process is told apart
			case word == wordStop:
				got.asked = true
				patience.Reset(endMax)
			case word == wordReady && !got.ready:
				got.ready, since = true, time.Now()
			}
			if silent = false; got.ready && !got.asked {
				patience.Reset(silentMax)
			}

		case <-patience.C:
			switch {
			case got.asked:
				end(fmt.Sprintf("it was asked to end, and had not %s later", endMax))
			case !got.ready:
				end(fmt.Sprintf("it did not answer within %s", readyMax))
			case !silent: // this process may have stood still itself, and what was said waits in the pipe
				silent = true
				patience.Reset(hearMax)
			default:
				end(fmt.Sprintf("it was silent for %s", silentMax))
			}

		case <-look.C:
			because := p.late.overdue()
			switch {
			case because == "" || !got.ready || got.asked:
				lateSince = time.Time{}
			case lateSince.IsZero():
				lateSince = time.Now()
			case time.Since(lateSince) >= hungAfter:
				p.late.ended()
				end(because)
			}

		case got.exit = <-c.ended:
			if got.ready {
				got.up = time.Since(since)
			}
			if why != "" {
				got.exit = exit{status: -1, why: why + ", so the keeper ended it"}
			}
			return got
		}
	}
}

// landings looks at the records of what is landing or on trial. The daemon writes and removes them; a keeper only reads.
type landings struct {
	dir  string
	now  func() (deadman.Moment, error)
	done map[string]time.Time // records for which a daemon was ended already, by when they were written
	last string               // what overdue has named
	at   time.Time            // when that was written
}

// overdue names a record whose deadline has passed. A daemon that takes it up arms it again or disarms it.
func (l *landings) overdue() string {
	paths, err := filepath.Glob(filepath.Join(deadman.Literal(l.dir), "[^.]*.json"))
	if err != nil || len(paths) == 0 {
		return ""
	}
	now, _ := l.now() // without a clock nothing says that there is time left
	for _, path := range paths {
		a, err := deadman.Read(path)
		if err != nil {
			continue // disarmed meanwhile, or none that can be read
		}
		if a.Due.Left(now) > 0 || l.done[path].Equal(a.At) {
			continue
		}
		l.last, l.at = path, a.At
		return fmt.Sprintf("it let the deadline of %s pass", a.Landing)
	}
	return ""
}

func (l *landings) ended() {
	if l.done == nil {
		l.done = map[string]time.Time{}
	}
	l.done[l.last] = l.at
}
