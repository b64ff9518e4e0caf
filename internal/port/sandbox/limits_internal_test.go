package sandbox

import (
	"math"
	"testing"
	"time"
)

// TestTheProcessorTimeOfALongSessionIsNoLessThanItsTime holds CH-080 on every machine: a session without an end may use the most that
// there is, and is not ended as it begins.
func TestTheProcessorTimeOfALongSessionIsNoLessThanItsTime(t *testing.T) {
	const long = 10 * 365 * 24 * time.Hour
	for _, processors := range []int{1, 2, 8, 58, 60, 64, 96, 117, 118, 128, 256, 4096} {
		if got := (Limits{Timeout: long}).on(processors).Processor; got < 4*long {
			t.Errorf("with %d processors: %d", processors, got)
		}
	}
	for processors, want := range map[int]time.Duration{1: 4 * time.Hour, 8: 4 * time.Hour, 64: 32 * time.Hour} {
		if got := (Limits{Timeout: time.Hour}).on(processors).Processor; got != want {
			t.Errorf("an hour with %d processors: %s, want %s", processors, got, want)
		}
	}
	if got := (Limits{Timeout: math.MaxInt64}).on(1).Processor; got != math.MaxInt64 {
		t.Errorf("of the longest time: %d", got)
	}
}
