package runner

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// setrlimit goes through package syscall: it alone tells the runtime not to restore the limit in children.
func setrlimit(what int, to unix.Rlimit) error {
	return syscall.Setrlimit(what, &syscall.Rlimit{Cur: to.Cur, Max: to.Max})
}
