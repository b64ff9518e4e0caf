package runner

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// started is when a process began, as the kernel counts; "" if it is not to be seen.
func started(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in brackets may hold anything; the 20th field behind it is the time.
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

func seeProcess(a sandbox.Aims) error {
	if a.Process == 0 {
		return errNoAim
	}
	switch started(a.Process) {
	case a.Started:
		return nil
	case "":
		return fmt.Errorf("there is no process %d", a.Process)
	}
	return fmt.Errorf("process %d is another one", a.Process)
}

func signalProcess(a sandbox.Aims) error {
	if a.Process == 0 {
		return errNoAim
	}
	if err := unix.Kill(a.Process, 0); err != nil {
		return err
	}
	if now := started(a.Process); now != a.Started && now != "" {
		return fmt.Errorf("process %d is another one", a.Process)
	}
	return nil
}

// ptraceSeize is PTRACE_SEIZE: the other goes on, and is free when this process ends.
const ptraceSeize = 0x4206

func seize(pid int) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, ptraceSeize, uintptr(pid), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

func traceProcess(a sandbox.Aims) error {
	if a.Process == 0 {
		return errNoAim
	}
	if err := seize(a.Process); err != nil {
		return err
	}
	return seeProcess(a)
}

// child starts this program again, in namespaces if flags say so.
func child(part string, flags uintptr) (*os.Process, error) {
	attr := os.ProcAttr{Dir: "/", Files: []*os.File{nil, nil, nil}}
	if flags != 0 {
		attr.Sys = &syscall.SysProcAttr{
			Cloneflags:  flags,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
	}
	return os.StartProcess("/proc/self/exe", []string{"sallyport-runner", "runner", part}, &attr)
}

// traceChild traces a process of its own, which waits to be ended.
func traceChild() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"sallyport-runner", "runner", "hold"}, &os.ProcAttr{Dir: "/", Files: []*os.File{r, nil, nil}})
	if err != nil {
		return err
	}
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	err = seize(p.Pid)
	return errors.Join(err, p.Kill(), gone(p))
}

// gone waits for the end of a process.
func gone(p *os.Process) error { _, err := p.Wait(); return err }

// reachInit works if the agent can get at pid 1, which holds the host's socket.
func reachInit(sandbox.Aims) error {
	if _, err := os.ReadDir("/proc/1/fd"); err == nil {
		return nil
	}
	if readable("/proc/1/mem") == nil || writable("/proc/1/mem") == nil {
		return nil
	}
	return seize(1)
}

func becomeRoot(sandbox.Aims) error { return becomeUID(0) }

// becomeUID changes the identity of one thread, which ends with it.
func becomeUID(uid int) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if errno != 0 {
			result <- errno
			return
		}
		result <- nil
	}()
	return <-result
}

// raiseLimit asks for more than this process may have: where that works it is put back.
func raiseLimit(sandbox.Aims) error {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		return err
	}
	more := unix.Rlimit{Cur: was.Cur, Max: was.Max + 1}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &more); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
}

func lowerLimit() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MSGQUEUE, &l); err != nil {
		return err
	}
	l.Cur = 0
	return unix.Setrlimit(unix.RLIMIT_MSGQUEUE, &l)
}

// mountAnything mounts, in a sandbox where it stands, and everywhere in a new namespace, where it harms nobody.
func mountAnything(a sandbox.Aims) error {
	if !a.Outside && unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") == nil {
		return nil
	}
	p, err := child("apart", unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	if err != nil {
		return err
	}
	state, err := p.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("in a namespace of its own: %s", state)
	}
	return err
}

// apart runs in a user and a mount namespace of its own and mounts something there.
func apart() int {
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""); err != nil {
		return 1
	}
	return 0
}

// call works if the kernel looks at a call at all: it is made so that it can do nothing.
func call(name string, number, a, b, c uintptr) error {
	_, _, errno := unix.RawSyscall6(number, a, b, c, 0, 0, 0)
	switch {
	case errno == unix.EPERM, errno == unix.ENOSYS, errno == unix.EACCES:
		return fmt.Errorf("%s: %w", name, errno)
	}
	return nil
}

func connectLoopback(a sandbox.Aims) error {
	if a.Port == 0 {
		return errNoAim
	}
	return connect(unix.AF_INET, &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte{127, 0, 0, 1}}, unix.SOCK_STREAM)
}

// routeOut asks the kernel for a way to addresses that are nobody's (TEST-NET-1, 2001:db8::/32); no packet is sent.
func routeOut(sandbox.Aims) error {
	err := connect(unix.AF_INET, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 0, 2, 1}}, unix.SOCK_DGRAM)
	if err == nil {
		return nil
	}
	return connect(unix.AF_INET6, &unix.SockaddrInet6{Port: 9, Addr: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}}, unix.SOCK_DGRAM)
}

// rawSocket works if this process may read and write packets as they are.
func rawSocket(sandbox.Aims) error {
	var err error
	for _, kind := range []struct{ family, protocol int }{{unix.AF_INET, unix.IPPROTO_ICMP}, {unix.AF_PACKET, 0}} {
		var fd int
		if fd, err = unix.Socket(kind.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, kind.protocol); err == nil {
			return unix.Close(fd)
		}
	}
	return err
}

// changeEgress works if the agent can put something else in the place of its way out, or open it to others.
func changeEgress(a sandbox.Aims) error {
	if a.Egress == "" {
		return errNoAim
	}
	return change(sandbox.EgressSocket, "/.sallyport/sallyport-probe")
}

func changeOwn() error {
	const path = sandbox.Mountpoint + "/sallyport-own"
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	return change(path, path+"-moved")
}

// change tries a file's rights and its name, and puts back what has worked.
func change(path, aside string) error {
	err := unix.Chmod(path, 0o600)
	if err == nil {
		return nil
	}
	if err = unix.Rename(path, aside); err == nil {
		return unix.Rename(aside, path)
	}
	return err
}

func connectUnix(name, prefix string) error {
	if name == "" {
		return errNoAim
	}
	return connect(unix.AF_UNIX, &unix.SockaddrUnix{Name: prefix + name}, unix.SOCK_STREAM)
}

func connect(family int, to unix.Sockaddr, kind int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// loopbackItself connects to a port of its own.
func loopbackItself() error {
	return listening(unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

// unixItself connects to a socket of its own.
func unixItself() error {
	return listening(unix.AF_UNIX, &unix.SockaddrUnix{Name: fmt.Sprintf("\x00sallyport-probe-%d", os.Getpid())})
}

func listening(family int, at unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, at); err != nil {
		return err
	}
	if err := unix.Listen(fd, 1); err != nil {
		return err
	}
	if at, err = unix.Getsockname(fd); err != nil {
		return err
	}
	return connect(family, at, unix.SOCK_STREAM)
}
