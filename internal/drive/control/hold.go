package control

import (
	"fmt"
	"sync"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/id"
	"sallyport/internal/path/trial"
)

const (
	workTime = 5 * time.Minute // that a landing, or what follows a decision, may be silent before the guard asks after it
	timeLeft = 3 * time.Second // after a trial's deadline, for the daemon's own timer
)

// hold has the guard watch what goes on with a landing, and tells it again and again that it does go on, until
// release. The guard stays armed after that.
func (c *Controller) hold(l id.Landing) (release func(), err error) {
	if err := c.arm(l); err != nil {
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
				if err := c.arm(l); err != nil {
					c.Log.Warn("the keeper could not be told that the landing goes on", "landing", l, "error", err)
				}
			}
		}
	})
	return sync.OnceFunc(func() { close(done); beat.Wait() }), nil
}

func (c *Controller) arm(l id.Landing) error {
	at, err := c.Clock()
	if err == nil {
		err = c.Guard.Arm(l, Watched{Until: deadman.Deadline{Set: at, In: workTime}})
	}
	if err != nil {
		return fmt.Errorf("arm the keeper: %w", err)
	}
	return nil
}

// armTrial has the guard watch a trial until its end, or, parted, just that end. A trial goes on without: the timer here and
// the row are still there.
func (c *Controller) armTrial(t trial.Trial, parted bool) {
	w := Watched{Until: t.Expires, Parted: parted}
	w.Until.In += timeLeft
	if err := c.Guard.Arm(t.Landing, w); err != nil {
		c.Log.Warn("no keeper watches this trial", "change", t.Change, "error", err)
	}
}

func (c *Controller) disarm(l id.Landing) {
	if err := c.Guard.Disarm(l); err != nil {
		c.Log.Warn("the keeper stays armed; when it fires, it finds nothing left to do", "landing", l, "error", err)
	}
}
