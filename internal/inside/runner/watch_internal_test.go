package runner

import (
	"os"
	"testing"
	"time"

	"sallyport/internal/port/sandbox"
)

// TestThreadsStandByWhileAProgramIsStarted holds that Go needs no new thread while the limit on tasks is a program's.
func TestThreadsStandByWhileAProgramIsStarted(t *testing.T) {
	readyThreads()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) <= threadsReady {
		t.Errorf("there are %d threads: %v", len(tasks), err)
	}
}

// TestInitLooksSeldomWhileNothingChanges holds how long init is blind: never long to what the kernel does not hold, and never long after
// something has changed.
func TestInitLooksSeldomWhileNothingChanges(t *testing.T) {
	still, moved := sight{tasks: 2, used: time.Second}, sight{tasks: 2, used: time.Second + tick}
	held, unheld := sandbox.Watching{Grouped: true}, sandbox.Watching{}
	for _, c := range []struct {
		name     string
		watching sandbox.Watching
		sights   []sight
		want     []int // ms
	}{
		{"nothing changes", held, []sight{still, still, still, still, still, still, still}, []int{100, 200, 400, 800, 1000, 1000, 1000}},
		{"a program works again", held, []sight{still, still, still, moved, moved}, []int{100, 200, 400, 100, 200}},
		{"no group holds their number", unheld, []sight{still, still, still}, []int{100, 100, 100}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := initProcess{watching: c.watching}
			for i, now := range c.sights {
				if got := in.rest(now); got != time.Duration(c.want[i])*time.Millisecond {
					t.Errorf("after look %d it is blind for %v, not %d ms", i+1, got, c.want[i])
				}
			}
		})
	}
}
