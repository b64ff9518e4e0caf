package metric

import (
	"time"

	"sallyport/internal/base/id"
)

// changesMax is how many changes have figures of their own.
const changesMax = 256

// Figures are the numbers of one change, since this daemon began.
type Figures struct {
	Change         id.Change
	Valid, Invalid int // checkpoints
	Skipped        int // checkpoints that nobody was to judge
	Failed         int // checkpoints that could not be taken
	Last, Longest  time.Duration
	Pauses         int
	PausesFailed   int
	Reverts        int
	Events         int64
	EventLongest   time.Duration
	QueueDepth     int
	UpperBytes     int64 // what the agent wrote, on disk now
	UpperMaxBytes  int64
	MemoryBytes    int64  // what the watch holds for it
	Shares         Shares // of the budgets of one change
	Ended          bool
}

// figures are the changes' own numbers: the last changesMax that had any.
type figures struct {
	of    map[id.Change]*entry
	clock int64 // counts touches
	sums  totals
	stale bool // sums must be taken again
}

type entry struct {
	Figures
	touched int64
	event   string // of a move that is not yet known to be committed
	queued  time.Time
}

// queueFor is how long a reading of a queue says something: who reads it reads it empty.
const queueFor = 10 * time.Second

// queue takes in a reading; it comes with every write of an agent, so the sums are not taken again.
func (f *figures) queue(e *entry, depth int) {
	f.sums.queue += depth - e.QueueDepth
	e.QueueDepth, e.queued = depth, time.Now()
}

// settle forgets readings that say nothing any more. It goes by the monotonic clock.
func (f *figures) settle() {
	for _, e := range f.of {
		if e.QueueDepth > 0 && time.Since(e.queued) > queueFor {
			e.QueueDepth, f.stale = 0, true
		}
	}
}

// at returns the numbers of a change, making room if there is none: an ended change goes
// first, then the one that was quiet for longest.
func (f *figures) at(change id.Change) *entry {
	f.clock++
	e, ok := f.of[change]
	if !ok {
		if len(f.of) >= changesMax {
			delete(f.of, f.oldest())
			f.stale = true
		}
		e = &entry{Figures: Figures{Change: change}}
		f.of[change] = e
	}
	e.touched = f.clock
	return e
}

func (f *figures) oldest() id.Change {
	var out *entry
	for _, e := range f.of {
		if out == nil || e.Ended && !out.Ended || e.Ended == out.Ended && e.touched < out.touched {
			out = e
		}
	}
	return out.Change
}

// totals are sums and largest over all changes.
type totals struct {
	queue               int
	upper, upperMax     int64
	memory, memoryMax   int64
	upperOf, memoryMost id.Change
	shares              Shares // the largest of each
	sharesOf            [budgets]id.Change
}

func (f *figures) totals() totals {
	if !f.stale {
		return f.sums
	}
	var t totals
	for _, e := range f.of {
		t.queue += e.QueueDepth
		t.upper += e.UpperBytes
		t.memory += e.MemoryBytes
		if e.UpperBytes > t.upperMax || e.UpperBytes == t.upperMax && e.Change < t.upperOf {
			t.upperMax, t.upperOf = e.UpperBytes, e.Change
		}
		if e.MemoryBytes > t.memoryMax || e.MemoryBytes == t.memoryMax && e.Change < t.memoryMost {
			t.memoryMax, t.memoryMost = e.MemoryBytes, e.Change
		}
	}
	for _, e := range f.of {
		for i, percent := range e.Shares {
			if percent > t.shares[i] || percent == t.shares[i] && percent > 0 && e.Change < t.sharesOf[i] {
				t.shares[i], t.sharesOf[i] = percent, e.Change
			}
		}
	}
	f.sums, f.stale = t, false
	return t
}
