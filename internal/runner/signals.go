package runner

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// action is room for the kernel's struct sigaction; all zero, it is the default action on every architecture.
type action [64]byte

// signalSetBytes is the size of the kernel's signal set.
const signalSetBytes = 8

// unhandle takes the runtime's handlers away from every signal but the one that it sends
// to itself. The kernel then drops what a process inside sends to pid 1: only a signal
// with a handler reaches it. Asking os/signal for all of them comes to the same, at the
// price of two changes of thread per signal. A fault of this program's own still ends it.
func unhandle() error {
	const ours, last = unix.SIGURG, 64
	var standard action
	for s := unix.Signal(1); s <= last; s++ {
		if s == unix.SIGKILL || s == unix.SIGSTOP || s == ours {
			continue // the first two have no handler; the runtime's for the third does nothing to a stranger's
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&standard)), 0, signalSetBytes, 0, 0)
		if errno != 0 {
			return fmt.Errorf("leave signal %d to the kernel: %w", s, errno)
		}
	}
	return nil
}
