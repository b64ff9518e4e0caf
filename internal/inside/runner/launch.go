package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// launch runs in a mount namespace of its own (as an ordinary user: in a user
// namespace of its own too). It only returns if something failed, and then it has
// told the driver what.
func launch() int {
	// Credentials, control groups and the parent's death signal belong to a thread.
	runtime.LockOSThread()
	err := build()
	if err == nil {
		return 0 // never: build ends in exec
	}
	failed := sandbox.Event{Failed: &sandbox.Failure{Text: err.Error(), Missing: errors.Is(err, os.ErrNotExist)}}
	if frame, ferr := sandbox.Frame(failed); ferr == nil {
		_ = writeAll(sandbox.ControlFD, frame) // nobody left to tell otherwise
	}
	return 1
}

func build() error {
	var l sandbox.Launch
	spec := os.NewFile(sandbox.LaunchFD, "launch")
	raw, err := io.ReadAll(spec)
	if err != nil {
		return fmt.Errorf("read what to launch: %w", err)
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("read what to launch: %w", err)
	}
	if err := spec.Close(); err != nil {
		return fmt.Errorf("read what to launch: %w", err)
	}
	if l.Owner.UID == 0 || l.Owner.GID == 0 {
		return errors.New("a sandbox is never run as uid or gid 0")
	}
	if err := dieWith(l.Parent); err != nil {
		return err
	}
	for _, fd := range l.GroupFDs {
		if err := writeAll(fd, []byte("0")); err != nil {
			return fmt.Errorf("join control group: %w", err)
		}
	}
	// Opened before the staging tmpfs covers /tmp, where somebody may have built it.
	confiner, err := unix.Open(l.Bubblewrap, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", l.Bubblewrap, err)
	}
	if l.Background {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, leastPriority); err != nil {
			return fmt.Errorf("let everything else go first: %w", err)
		}
	}
	unix.Umask(0o022)
	if err := dumpNothing(); err != nil {
		return err
	}
	if err := stage(l); err != nil {
		return err
	}
	if l.Range {
		return standBy(l, confiner)
	}
	if err := giveUp(l); err != nil {
		return err
	}
	return become(l, confiner)
}

// undumped is the one limit at which a crash starts no program of the machine's. Where the kernel is told to pass core dumps to a program
// (core_pattern), it runs that program as root, out here, and for that any other limit is none, 0 too.
const undumped = 1

// dumpNothing limits core dumps of all that runs in the sandbox; the filter keeps the limit as it is. Who may not set it has one of 0 that
// somebody else set.
func dumpNothing() error {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &was); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	err := setrlimit(unix.RLIMIT_CORE, unix.Rlimit{Cur: undumped, Max: undumped})
	if errors.Is(err, unix.EPERM) && was.Max == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	return nil
}

// leastPriority is the nice value of what everything else goes before.
const leastPriority = 19

// dieWith ties this thread's life to its parent's, and makes sure that the parent was not gone before.
func dieWith(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask for the parent's death signal: %w", err)
	}
	if now := os.Getppid(); now != parent {
		return fmt.Errorf("the parent %d is gone", parent)
	}
	return nil
}

// giveUp drops every right for good: identity, groups, capabilities, and the way to get any by exec.
func giveUp(l sandbox.Launch) error {
	if l.Drop {
		uid, gid := uintptr(l.Owner.UID), uintptr(l.Owner.GID)
		if err := onThread(unix.SYS_SETGROUPS, 0, 0, 0); err != nil {
			return fmt.Errorf("drop groups: %w", err)
		}
		if err := onThread(unix.SYS_SETRESGID, gid, gid, gid); err != nil {
			return fmt.Errorf("drop to gid %d: %w", gid, err)
		}
		if err := onThread(unix.SYS_SETRESUID, uid, uid, uid); err != nil {
			return fmt.Errorf("drop to uid %d: %w", uid, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	var real, effective, saved uint32
	if err := onThread(unix.SYS_GETRESUID, uintptr(unsafe.Pointer(&real)), uintptr(unsafe.Pointer(&effective)), uintptr(unsafe.Pointer(&saved))); err != nil {
		return fmt.Errorf("look at the identity: %w", err)
	}
	if uid := l.Owner.UID; real != uid || effective != uid || saved != uid {
		return fmt.Errorf("still uid %d, %d, %d after dropping to %d", real, effective, saved, uid)
	}
	// A change of identity clears the death signal.
	return dieWith(l.Parent)
}

// onThread changes the identity of this thread alone: it is the one that execs,
// and the others end there. Changing all of them takes as long as the whole start.
func onThread(call uintptr, a, b, c uintptr) error {
	if _, _, errno := unix.RawSyscall(call, a, b, c); errno != 0 {
		return errno
	}
	return nil
}

// become replaces this process by bubblewrap, with nothing open but 0-2, the control socket and the filter.
func become(l sandbox.Launch, confiner int) error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	for _, fd := range []uintptr{sandbox.ControlFD, sandbox.FilterFD} {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("pass descriptor %d: %w", fd, err)
		}
	}
	// Who started the daemon may have had signals blocked. What runs inside would never hear them.
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil); err != nil {
		return fmt.Errorf("unblock signals: %w", err)
	}
	path, argv := confine(l, confiner)
	if err := unix.Exec(path, argv, nil); err != nil {
		return fmt.Errorf("start %s: %w", l.Bubblewrap, err)
	}
	return nil
}

// standBy starts bubblewrap as root of a user namespace that has nothing but a range of uids that are nobody's, and waits for its end. In
// there it needs no more than what it makes itself, so this process gives up nothing but the way to more.
func standBy(l sandbox.Launch, confiner int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	// What the driver handed on is this process's alone: the control groups and the id maps are root's.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	uids := []syscall.SysProcIDMap{{HostID: int(l.Owner.UID), Size: sandbox.RangeSize}}
	gids := []syscall.SysProcIDMap{{HostID: int(l.Owner.GID), Size: sandbox.RangeSize}}
	path, argv := confine(l, confiner)
	none := ^uintptr(0)
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Files: []uintptr{0, 1, 2, sandbox.ControlFD, none, sandbox.FilterFD},
		Sys: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: uids, GidMappings: gids, GidMappingsEnableSetgroups: true,
			Credential: &syscall.Credential{}, Pdeathsig: syscall.SIGKILL,
		},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", l.Bubblewrap, err)
	}
	if err := unix.Close(sandbox.ControlFD); err != nil { // it ends with who holds it inside
		return fmt.Errorf("close descriptors: %w", err)
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		_, err = unix.Wait4(pid, nil, 0, nil)
	}
	return err
}

// builderRights are the capabilities that building an image takes. What rules networks, looks into other processes (as init is one) or
// reaches other parts of the kernel is none of them; a user namespace of its own, which would have them all, the filter refuses.
var builderRights = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD", "CAP_NET_BIND_SERVICE",
	"CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_CHROOT",
}

// confine is the command that confines: the path of bubblewrap and its words.
func confine(l sandbox.Launch, confiner int) (path string, argv []string) {
	argv = []string{"bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup"}
	if l.Range {
		argv = append(argv, "--cap-drop", "ALL")
		for _, name := range builderRights {
			argv = append(argv, "--cap-add", name)
		}
	} else {
		uid, gid := strconv.FormatUint(uint64(l.Owner.UID), 10), strconv.FormatUint(uint64(l.Owner.GID), 10)
		argv = append(argv, "--unshare-user", "--uid", uid, "--gid", gid, "--cap-drop", "ALL")
	}
	argv = append(argv,
		"--hostname", "sandbox",
		"--new-session", "--die-with-parent", "--as-pid-1", "--clearenv", "--setenv", "GOMAXPROCS", "1",
		"--bind", rootDir, "/",
		"--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys",
		"--dev", "/dev", "--bind", scratchDir+"/shm", "/dev/shm", "--remount-ro", "/dev",
		"--remount-ro", "/",
		"--chdir", "/", "--seccomp", strconv.Itoa(sandbox.FilterFD),
		"--", sandbox.InitPath, "runner", "init")
	path = l.Bubblewrap
	if sandbox.Below(path, stageDir) {
		path = "/proc/self/fd/" + strconv.Itoa(confiner)
	}
	return path, argv
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
