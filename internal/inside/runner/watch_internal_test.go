package runner

import (
	"os"
	"testing"
)

// TestThreadsStandByWhileAProgramIsStarted holds that Go needs no new thread while the limit on tasks is a program's.
func TestThreadsStandByWhileAProgramIsStarted(t *testing.T) {
	readyThreads()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) <= threadsReady {
		t.Errorf("there are %d threads: %v", len(tasks), err)
	}
}
