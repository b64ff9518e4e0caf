package runner

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// landlockScope is the version of Landlock from which on a domain needs no rule about files.
const landlockScope = 6

// enterDomain puts this thread, and whatever it starts, into a domain of Landlock's for good. Who is in it can look
// into nobody who is not: no memory, no descriptor, so no terminal that another holds. Nothing else is taken from it
// but sockets without a file that somebody outside of it listens on.
func enterDomain(version int) error {
	var rules unix.LandlockRulesetAttr
	switch {
	case version >= landlockScope:
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	case version >= sandbox.LandlockMin:
		rules.Handled_access_fs = unix.LANDLOCK_ACCESS_FS_REFER
	default:
		return fmt.Errorf("keep programs apart: Landlock has version %d here, and %d is needed", version, sandbox.LandlockMin)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("keep programs apart: %w", errno)
	}
	defer unix.Close(int(fd))
	if rules.Handled_access_fs != 0 {
		if err := allowBelowRoot(fd, rules.Handled_access_fs); err != nil {
			return fmt.Errorf("keep programs apart: %w", err)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("keep programs apart: %w", errno)
	}
	return nil
}

// allowBelowRoot takes back for every file what a domain has to forbid for some.
func allowBelowRoot(rules uintptr, access uint64) error {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(root)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// inDomain runs f on a thread of its own that is in a domain, or says why it is in none. The thread ends with f.
func inDomain(f func(err error)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: what a thread has entered it does not leave
		f(enterDomain(sandbox.LandlockVersion()))
	}()
	<-done
}
