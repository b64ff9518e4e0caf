package tools

import (
	"testing"
	"time"
)

func TestARateLetsABurstThroughAndThenOneAtATime(t *testing.T) {
	r := rate{burst: 2, every: 10 * time.Second}
	start := time.Unix(1_700_000_000, 0)
	for i, step := range []struct {
		at     time.Duration
		ok     bool
		missed int
	}{
		{0, true, 0}, {0, true, 0},
		{0, false, 0}, {time.Second, false, 1}, {9 * time.Second, false, 2}, // the first of a row is told
		{10 * time.Second, true, 2}, {10 * time.Second, false, 0},
		{20 * time.Second, true, 0}, {29 * time.Second, false, 0},
		{35 * time.Second, true, 0}, {40 * time.Second, true, 0}, // what is left of the time since the last counts
		{time.Hour, true, 0}, {time.Hour, true, 0}, {time.Hour, false, 0}, // never more than the burst
		{time.Hour - time.Minute, false, 1}, // a clock that goes back gives nothing
		{time.Hour + 10*time.Second, true, 1},
	} {
		if ok, missed := r.take(start.Add(step.at)); ok != step.ok || missed != step.missed {
			t.Errorf("step %d: %v, %d", i, ok, missed)
		}
	}
}
