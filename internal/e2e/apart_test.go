package e2e_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/race"
	"sallyport/internal/base/race/racetest"
)

// lane is set for a process that runs one test for another process.
const lane = "SALLYPORT_TEST_LANE"

// apart runs a test in a process of its own, beside others, and returns whether this is that process. Such a
// test adopts what its children leave behind, which only one test of a process can do. The process is one
// without the race detector: a sandbox takes seconds to start with it, and the loop starts thousands.
func apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(lane) != "" {
		return true
	}
	need(t, "bwrap")
	need(t, "git")
	t.Parallel()
	limit := 40 * time.Minute
	if end, ok := t.Deadline(); ok && disktest.Long() { // it lasts as long as whoever asked for it waits
		limit = time.Until(end)
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.timeout=" + limit.String()}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(plain(t), args...)
	cmd.Env = append(os.Environ(), lane+"=1")
	runtime.LockOSThread() // the death signal follows the thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if disktest.Long() { // hours: who waits sees how far it is
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	}
	err := cmd.Run()
	t.Logf("%s", out.Bytes())
	if err != nil {
		t.Errorf("in a process apart: %v", err)
	}
	return false
}

// laneFile lies beside the program of a place, and holds the process of the test that the place is for.
const laneFile = "lane"

// endWithLane has this process, a daemon or a keeper of a place, end with the test that it is for, also where that was killed and could
// clear up nothing.
func endWithLane() {
	self, err := os.Executable()
	if err != nil {
		return
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(self), laneFile))
	if err != nil {
		return // it is nobody's
	}
	pid, err := strconv.Atoi(string(raw))
	if err != nil {
		return
	}
	lane, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		os.Exit(1) // it has ended
	}
	go func() { // ends with the process
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(lane), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				os.Exit(1)
			}
		}
	}()
}

// built is the folder of the program that plain has made, for TestMain to remove.
var built struct {
	once         sync.Once
	dir, program string
	err          error
}

func build() {
	if built.dir, built.err = os.MkdirTemp("", "sally-plain"); built.err == nil {
		built.program, built.err = racetest.BuildWithRunner(built.dir)
	}
}

// plain is this test's program without the race detector.
func plain(t *testing.T) string {
	t.Helper()
	if !race.Enabled {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return self
	}
	need(t, "go")
	_ = disktest.Seed(t) // go keeps a result by what the test itself has read, and it is the program that takes the points
	built.once.Do(build)
	if built.err != nil {
		t.Fatalf("build the test without the race detector: %v", built.err)
	}
	return built.program
}
