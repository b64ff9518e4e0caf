package api

import (
	"sync"
	"sync/atomic"
	"time"
)

// patience is time that passes only while this process runs: one that stands frozen loses none of it.
type patience struct {
	left atomic.Int64
	all  time.Duration
	done chan struct{}
	stop sync.Once
}

// ticks is how finely time is counted.
const ticks = 100

// newPatience calls over, from a goroutine of its own, once all of the time has passed; Stop ends it.
func newPatience(all time.Duration, over func()) *patience {
	p := &patience{all: all, done: make(chan struct{})}
	p.left.Store(int64(all))
	tick := min(max(all/ticks, time.Millisecond), time.Second)
	go func() { // ends with Stop, or once it is over
		t := time.NewTicker(tick) // drops what nobody was there to hear
		defer t.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-t.C:
				if p.left.Add(-int64(tick)) <= 0 {
					over()
					return
				}
			}
		}
	}()
	return p
}

// Renew begins again.
func (p *patience) Renew() { p.left.Store(int64(p.all)) }

// Stop ends it; twice is as good as once.
func (p *patience) Stop() { p.stop.Do(func() { close(p.done) }) }
