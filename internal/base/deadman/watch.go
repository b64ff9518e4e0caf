package deadman

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// How patient a keeper is.
const (
	lookEvery   = 200 * time.Millisecond
	AttemptsMax = 60              // how often it fires at most: most of its life, for a full disk is not emptied at once
	pauseMin    = time.Second     // after the first firing; doubles after each
	pauseMax    = time.Minute     //
	hungAfter   = 5 * time.Second // that a living daemon has to take a deadline's firing up
)

// ErrGaveUp says that firing did not lead to disarming. The record stays for the next start.
var ErrGaveUp = errors.New("the keeper gave up")

// Watcher is what Watch looks at and what it does.
type Watcher struct {
	Read  func() (Armed, error)                       // the record as it is now; fs.ErrNotExist once it is disarmed
	Now   func() (Moment, error)                      // both clocks
	Alive func(Process) bool                          // whether who armed it runs
	Fire  func(ctx context.Context, a Armed) error    // runs the command; ends with ctx
	End   func(Process) error                         // ends exactly that process
	Tell  func(state string, attempt int, why string) // for the log
}

// Watch follows a record, also through being armed again, until it is disarmed and returns nil then.
//
// It fires when the deadline has passed or the armer is gone, then waits for the record to
// be disarmed, and fires again, with longer and longer pauses, AttemptsMax times in all. An armer that
// lives, and has neither disarmed nor armed anew within hungAfter of its deadline's firing, is ended first. It
// returns ErrGaveUp after that or after LifeMax, and ctx's cause if ctx ends; the record stays armed.
func Watch(ctx context.Context, w Watcher) error {
	ctx, cancel := context.WithTimeoutCause(ctx, LifeMax, fmt.Errorf("after %s: %w", LifeMax, ErrGaveUp))
	defer cancel()
	pause := pauseMin
	for attempt := 1; ; attempt++ {
		a, why, err := w.await(ctx)
		if err != nil || why == "" {
			return err
		}
		if attempt > AttemptsMax {
			return fmt.Errorf("fired %d times, and the rollback is not done: %w", AttemptsMax, ErrGaveUp)
		}
		w.Tell("fired", attempt, why)
		if w.Alive(a.Daemon) {
			gone, err := w.rouse(ctx, a, attempt)
			if err != nil || gone {
				return err
			}
			continue
		}
		if err := w.Fire(ctx, a); err != nil {
			w.Tell("failed", attempt, err.Error())
		}
		gone, err := w.within(ctx, pause, func(error, Armed) bool { return false })
		if err != nil || gone {
			return err
		}
		pause = min(2*pause, pauseMax)
	}
}

// rouse fires for a deadline that a living daemon has let pass, and ends that daemon if nothing comes of it.
// It reports whether the record is disarmed.
func (w Watcher) rouse(ctx context.Context, a Armed, attempt int) (gone bool, err error) {
	brief, cancel := context.WithTimeout(ctx, hungAfter) // the command may wait for a daemon that never answers
	defer cancel()
	fired := make(chan error, 1)
	go func() { fired <- w.Fire(brief, a) }()
	again := false
	gone, err = w.within(ctx, hungAfter, func(err error, now Armed) bool {
		again = err == nil && !now.same(a)
		return again
	})
	cancel()
	if err := <-fired; err != nil && !gone && !again {
		w.Tell("failed", attempt, err.Error())
	}
	if err != nil || gone || again || !w.Alive(a.Daemon) {
		return gone, err
	}
	w.Tell("ended", attempt, fmt.Sprintf("the daemon (process %d) did nothing in time, so the keeper ends it", a.Daemon.PID))
	if err := w.End(a.Daemon); err != nil {
		w.Tell("failed", attempt, err.Error())
	}
	gone, err = w.within(ctx, pauseMin, func(error, Armed) bool { return !w.Alive(a.Daemon) })
	return gone, err
}

// await looks until there is a reason to fire, and returns the reason; "" once disarmed.
func (w Watcher) await(ctx context.Context) (last Armed, why string, err error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	known, doubted := false, Armed{}
	for {
		a, err := w.Read()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return a, "", nil
		case err == nil:
			last, known = a, true
		case !known:
			return a, "", err
		}
		switch why := w.reason(last); {
		case why == "":
			doubted = Armed{}
		case doubted.same(last):
			return last, why, nil
		default: // a daemon disarms before it goes: what was read may be of before that, so it is read once more
			doubted = last
			continue
		}
		select {
		case <-ctx.Done():
			return a, "", context.Cause(ctx)
		case <-look.C:
		}
	}
}

// reason says why it is time to fire for a record; "" = it is not.
func (w Watcher) reason(a Armed) string {
	if !a.Parted && !w.Alive(a.Daemon) {
		return fmt.Sprintf("the daemon (process %d) is gone", a.Daemon.PID)
	}
	// Without a clock nothing says that there is time left. A parent that runs sees to that itself.
	if now, err := w.Now(); (err != nil || a.Due.Left(now) == 0) && (!a.Kept || a.Parted) {
		return fmt.Sprintf("the deadline %s has passed", a.Due.At().Format(time.RFC3339))
	}
	return ""
}

// within waits for the record to go away, until enough says so of what was read last, or d is over.
func (w Watcher) within(ctx context.Context, d time.Duration, enough func(error, Armed) bool) (gone bool, err error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		a, err := w.Read()
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if enough(err, a) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-over.C:
			return false, nil
		case <-look.C:
		}
	}
}
