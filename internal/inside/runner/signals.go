package runner

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is left as it is: the first two cannot be changed, the third is the runtime's own and
// does nothing otherwise, the fourth must not be ignored for children to be waited for, and the
// rest has no handler of the runtime's, which a child would have to be rid of.
var leftAlone = []unix.Signal{
	unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, unix.SIGCHLD,
	unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, 32, 33, 34,
}

// What is caught and forgotten: faults, which would else be the end when they are sent and
// silence when they are real, and what a shell may have had ignored, which a child would keep.
var caught = []os.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGHUP, unix.SIGINT}

// action is room for the kernel's struct sigaction, which begins with the handler on every
// architecture that this runs on.
type action struct {
	handler uintptr
	_       [7]uint64
}

// ignore is the handler that stands for none.
const ignore = 1

// signalSetBytes is the size of the kernel's signal set.
const signalSetBytes = 8

// ignoreSignals sees to it that no signal that can be caught ends this process. To have os/signal catch
// them all comes to the same, at the price of two changes of thread for each. Children do not
// inherit it: the runtime gives them the default of whatever it handled at the beginning.
//
// The default would not do, although pid 1 is said to be safe from it: a signal that the first
// thread holds blocked, as it does during a fork, is given to another one and ends them all.
func ignoreSignals() error {
	const last = 64
	signal.Notify(make(chan os.Signal, 1), caught...)
	ignored := action{handler: ignore}
	for s := unix.Signal(1); s <= last; s++ {
		if slices.Contains(leftAlone, s) || slices.Contains(caught, os.Signal(s)) {
			continue
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&ignored)), 0, signalSetBytes, 0, 0)
		if errno != 0 {
			return fmt.Errorf("ignore signal %d: %w", s, errno)
		}
	}
	return hear(32, 33)
}

// hear takes back that signals of the C library's own are ignored: programs that it starts, as make
// does, have them so, and pass it on to everything below them.
func hear(signals ...unix.Signal) error {
	for _, s := range signals {
		var is, usual action
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(unsafe.Pointer(&is)), signalSetBytes, 0, 0)
		if errno == 0 && is.handler == ignore {
			_, _, errno = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&usual)), 0, signalSetBytes, 0, 0)
		}
		if errno != 0 {
			return fmt.Errorf("stop ignoring signal %d: %w", s, errno)
		}
	}
	return nil
}
