package runner

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that has been told to stop and has had no turn since stays stopped after a freeze, as one that has obeyed.
// One that stands before a tracer shows it: what it is sent waits.
func TestAStopThatIsStillToBeObeyedIsSeen(t *testing.T) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	var at unix.WaitStatus
	if _, err := unix.Wait4(pid, &at, unix.WALL, nil); err != nil || !at.Stopped() {
		t.Fatalf("it does not stand before its tracer: %v, %v", at, err)
	}

	if toStop(pid) {
		t.Error("it is to stop, and nobody has said so")
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if toStop(pid) {
		t.Error("another signal is taken for a stop")
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if !toStop(pid) {
		t.Error("it is to stop, and that is not seen")
	}
}
