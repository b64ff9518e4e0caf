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
	AttemptsMax = 8           // how often it fires at most
	pauseMin    = time.Second // after the first firing; doubles after each
	pauseMax    = time.Minute
)

// ErrGaveUp says that firing did not lead to disarming. The record stays for the next start.
var ErrGaveUp = errors.New("the keeper gave up")

// Watcher is what Watch looks at and what it does.
type Watcher struct {
	Read  func() (Armed, error)                       // the record as it is now; fs.ErrNotExist once it is disarmed
	Alive func(Process) bool                          // whether who armed it runs
	Fire  func(ctx context.Context, a Armed) error    // runs the command; must end
	Tell  func(state string, attempt int, why string) // for the log
}

// Watch follows a record, also through being armed again, until it is disarmed and returns nil then.
//
// It fires when the deadline has passed or the armer is gone, then waits for the record to
// be disarmed, and fires again, with longer and longer pauses, AttemptsMax times in all. It
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
			return fmt.Errorf("after firing %d times, still armed: %w", AttemptsMax, ErrGaveUp)
		}
		w.Tell("fired", attempt, why)
		if err := w.Fire(ctx, a); err != nil {
			w.Tell("failed", attempt, err.Error())
		}
		if gone, err := w.disarmedWithin(ctx, pause); err != nil || gone {
			return err
		}
		pause = min(2*pause, pauseMax)
	}
}

// await looks until there is a reason to fire, and returns the reason; "" once disarmed.
func (w Watcher) await(ctx context.Context) (last Armed, why string, err error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for known := false; ; {
		a, err := w.Read()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return a, "", nil
		case err == nil:
			last, known = a, true
		case !known:
			return a, "", err
		}
		if !w.Alive(last.Daemon) {
			return last, fmt.Sprintf("the daemon (process %d) is gone", last.Daemon.PID), nil
		}
		if !time.Now().Before(last.Deadline) {
			return last, fmt.Sprintf("the deadline %s has passed", last.Deadline.Format(time.RFC3339)), nil
		}
		select {
		case <-ctx.Done():
			return a, "", context.Cause(ctx)
		case <-look.C:
		}
	}
}

// disarmedWithin waits for the record to go away.
func (w Watcher) disarmedWithin(ctx context.Context, d time.Duration) (bool, error) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	enough := time.NewTimer(d)
	defer enough.Stop()
	for {
		if _, err := w.Read(); errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-enough.C:
			return false, nil
		case <-look.C:
		}
	}
}
