// Package guard has a keeper outside of the daemon watch what goes on with a landing or a trial: if the daemon dies, or hangs, the
// keeper brings one to it.
package guard

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/path/trial"
)

const (
	workTime = 5 * time.Minute // that a landing, or what follows a decision, may be silent before the keeper asks after it
	timeLeft = 3 * time.Second // after a trial's deadline, for the daemon's own timer
)

// Keeper stands outside: it brings the daemon back if it dies, or hangs past a deadline, while a landing is open or on trial.
type Keeper interface {
	// Arm has it watch from now on; arming again replaces what was armed.
	Arm(l id.Landing, w Watched) error
	Disarm(l id.Landing) error
}

// Watched is how a keeper watches.
type Watched struct {
	Until  deadman.Deadline // by then it is disarmed or armed again, or a daemon is brought to it
	Parted bool             // the daemon ends because it was asked to: only the deadline counts
}

// Guard arms and disarms the keeper, and says so where that cannot be done.
type Guard struct {
	Keeper Keeper
	Clock  func() (deadman.Moment, error)
	Log    *slog.Logger
}

// Hold has the keeper watch what goes on with a landing, and tells it again and again that it does go on, until
// release. The keeper stays armed after that.
func (g Guard) Hold(l id.Landing) (release func(), err error) {
	if err := g.arm(l); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	var beat sync.WaitGroup
	beat.Go(func() {
		tick := time.NewTicker(workTime / 2)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if err := g.arm(l); err != nil {
					g.Log.Warn("the keeper could not be told that the landing goes on", "landing", l, "error", err)
				}
			}
		}
	})
	return sync.OnceFunc(func() { close(done); beat.Wait() }), nil
}

func (g Guard) arm(l id.Landing) error {
	at, err := g.Clock()
	if err == nil {
		err = g.Keeper.Arm(l, Watched{Until: deadman.Deadline{Set: at, In: workTime}})
	}
	if err != nil {
		return fmt.Errorf("arm the keeper: %w", err)
	}
	return nil
}

// ArmTrial has the keeper watch a trial until its end, or, parted, just that end. A trial goes on without: the timer here and
// the row are still there.
func (g Guard) ArmTrial(t trial.Trial, parted bool) {
	w := Watched{Until: t.Expires, Parted: parted}
	w.Until.In += timeLeft
	if err := g.Keeper.Arm(t.Landing, w); err != nil {
		g.Log.Warn("no keeper watches this trial", "change", t.Change, "error", err)
	}
}

// Disarm ends the keeper's watch.
func (g Guard) Disarm(l id.Landing) {
	if err := g.Keeper.Disarm(l); err != nil {
		g.Log.Warn("the keeper stays armed; when it fires, it finds nothing left to do", "landing", l, "error", err)
	}
}
