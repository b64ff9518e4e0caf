package runner

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// attempts are what a self-test tries, in the order of its report. A host holds the self-test of its next version against the
// names it knows, in a sandbox that it builds itself: what asks for more than before needs another name, or no upgrade gets past it.
var attempts = []attempt{
	// Files: what is not mounted is not there (SECURITY, rule 1).
	{name: "read a file of the host", try: func(a sandbox.Aims) error { return readable(a.File) }},
	{name: "list the person's home and sallyport's state", try: listFolders},
	{name: "see the host's top folders", try: func(sandbox.Aims) error { return beyond("/", topsInside) }},
	{name: "see the host's /etc", try: func(sandbox.Aims) error {
		return there("/etc/hostname", "/etc/machine-id", "/etc/fstab", "/etc/shadow", "/etc/ssh")
	}},
	{name: "write outside the workspace", try: writeOutside, inside: true, allowed: writeAllowed, where: "in the workspace and /tmp"},
	{name: "replace the sandbox's own program", try: func(sandbox.Aims) error { return writable(sandbox.InitPath) }, inside: true,
		allowed: func() error { return writable(sandbox.Mountpoint + "/file") }, where: "on a file of the workspace"},
	{name: "set the kernel's core pattern", try: func(sandbox.Aims) error { return writable("/proc/sys/kernel/core_pattern") },
		allowed: func() error { return writable("/proc/self/comm") }, where: "on its own /proc/self/comm"},
	{name: "reach the kernel through /proc and /sys", try: kernelFiles,
		allowed: func() error { return writable("/proc/self/oom_score_adj") }, where: "on its own /proc/self/oom_score_adj"},
	{name: "reach control groups", try: func(sandbox.Aims) error { return there("/sys/fs/cgroup") }},
	{name: "open a device of the host", try: func(sandbox.Aims) error { return beyond("/dev", devicesInside) },
		allowed: func() error { return writable("/dev/null") }, where: "on /dev/null"},
	{name: "make a device", try: makeDevice, inside: true, allowed: makePipe, where: "as a named pipe"},

	// Descriptors, processes and what they may.
	{name: "inherit a descriptor", try: inherited},
	{name: "see a process of the host", try: seeProcess},
	{name: "signal a process of the host", try: signalProcess},
	{name: "trace a process of the host", try: traceProcess, allowed: traceChild, where: "on its own child"},
	{name: "reach into the sandbox's init", try: reachInit, inside: true, allowed: traceChild, where: "on its own child"},
	{name: "keep a right, or be without a filter", try: holdRight},
	{name: "gain rights by a set-uid program", try: gainRights},
	{name: "become root", try: becomeRoot, allowed: func() error { return becomeUID(os.Getuid()) }, where: "to its own uid"},
	{name: "raise its own limits", try: raiseLimit, allowed: lowerLimit, where: "downwards"},

	// The kernel.
	{name: "mount, also in a namespace of its own", try: mountAnything},
	{name: "use the kernel's keys", try: func(sandbox.Aims) error { return call("keyctl", unix.SYS_KEYCTL, 0, keySession, 0) }},
	{name: "load a program into the kernel", try: func(sandbox.Aims) error { return call("bpf", unix.SYS_BPF, 9999, 0, 0) }},
	{name: "watch the machine's performance", try: func(sandbox.Aims) error { return call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) }},
	{name: "set up io_uring", try: func(sandbox.Aims) error { return call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, 0, 0) }},

	// The network: there is none but the way out (SECURITY, sandbox → network).
	{name: "connect to the host's loopback", try: connectLoopback, allowed: loopbackItself, where: "to a port of its own"},
	{name: "find a way to another machine", try: routeOut},
	{name: "connect to an abstract socket of the host", try: func(a sandbox.Aims) error { return connectUnix(a.Abstract, "\x00") },
		allowed: unixItself, where: "to a socket of its own"},
	{name: "connect to a socket file of the host", try: func(a sandbox.Aims) error { return connectUnix(a.Socket, "") },
		allowed: unixItself, where: "to a socket of its own"},
	{name: "see what passes on a network", try: rawSocket, allowed: loopbackItself, where: "to a port of its own"},
	{name: "change its own way out", try: changeEgress, inside: true, allowed: changeOwn, where: "on a file of the workspace"},
}

var (
	topsInside = []string{".sallyport", "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr",
		"var", "workspace", "worktree"}

	devicesInside = []string{"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
)

// keySession is KEY_SPEC_SESSION_KEYRING.
const keySession = ^uintptr(2)

func readable(path string) error {
	if path == "" {
		return errNoAim
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Read(make([]byte, 1))
	return err
}

// writable opens an existing file for writing, and writes nothing.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = f.Close()
	}
	return err
}

// listFolders works if any of the folders can be listed.
func listFolders(a sandbox.Aims) error {
	if len(a.Folders) == 0 {
		return errNoAim
	}
	var err error
	for _, folder := range a.Folders {
		var entries []os.DirEntry
		if entries, err = os.ReadDir(folder); err != nil {
			continue
		}
		// A folder of the same name may stand there, such as /home: what counts is what is in it.
		if entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return folder+"/"+e.Name() == sandbox.Home }); len(entries) > 0 {
			return nil
		}
		err = fmt.Errorf("nothing is in %s", folder)
	}
	return err
}

// beyond works if a folder shows anything but names.
func beyond(dir string, names []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			return nil
		}
	}
	return fmt.Errorf("%s shows only what belongs there", dir)
}

// there works if one of the paths is there.
func there(paths ...string) error {
	var err error
	for _, path := range paths {
		if _, err = os.Lstat(path); err == nil {
			return nil
		}
	}
	return err
}

// writeOutside tries to make a file in every folder that is not the agent's.
func writeOutside(sandbox.Aims) error {
	for _, dir := range []string{"/", "/usr", "/usr/bin", "/etc", "/home", "/var", "/dev", "/proc", "/proc/sys", "/.sallyport", sandbox.ObjectsRoot, "/bin"} {
		f, err := os.OpenFile(dir+"/sallyport-probe", os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			return f.Close()
		}
	}
	if writable("/etc/passwd") == nil {
		return nil
	}
	return errors.New("every place refused the write")
}

func writeAllowed() error {
	for _, dir := range []string{sandbox.Mountpoint, "/tmp"} {
		path := dir + "/sallyport-probe"
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// kernelFiles are opened, never written.
func kernelFiles(sandbox.Aims) error {
	err := errors.New("none of these files is there")
	for _, path := range []string{"/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/modprobe",
		"/sys/kernel/uevent_helper", "/sys/power/state"} {
		if err = writable(path); err == nil {
			return nil
		}
	}
	return err
}

func makeDevice(sandbox.Aims) error {
	path := sandbox.Mountpoint + "/sallyport-device"
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	return readable(path) // a node that cannot be opened is none
}

func makePipe() error {
	path := sandbox.Mountpoint + "/sallyport-pipe"
	if err := unix.Mknod(path, unix.S_IFIFO|0o600, 0); err != nil {
		return err
	}
	return os.Remove(path)
}

// inherited looks for a descriptor of the file that one was left open on, and, in a sandbox, for any.
func inherited(a sandbox.Aims) error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the one that lists them
		}
		if a.Inherited != "" && to == a.Inherited {
			return nil
		}
		var fd int
		if _, err := fmt.Sscan(e.Name(), &fd); err != nil || fd <= 2 || a.Outside {
			continue
		}
		// What this program opened itself closes on exec; what it inherited does not.
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			return nil
		}
	}
	return errors.New("no descriptor of the host came along")
}

// status reads this process's rights as the kernel shows them.
func status() (map[string]string, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	facts := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimLeft(strings.TrimSpace(value), "0")
		if value == "" {
			value = "0"
		}
		facts[name] = value
	}
	return facts, nil
}

// holdRight works if anything is not taken away; a fact that the kernel does not tell is not.
func holdRight(sandbox.Aims) error {
	facts, err := status()
	if err != nil {
		return nil //nolint:nilerr // what cannot be seen does not hold
	}
	for name, want := range map[string]string{"CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapAmb": "0", "CapBnd": "0", "NoNewPrivs": "1", "Seccomp": "2"} {
		if facts[name] != want {
			return nil
		}
	}
	if os.Getuid() == 0 || os.Geteuid() == 0 {
		return nil
	}
	return errors.New("it has no capability, gains no privileges, is filtered and is not root")
}

// gainRights works if the kernel would give a set-uid program its owner's rights.
func gainRights(sandbox.Aims) error {
	facts, err := status()
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	if facts["NoNewPrivs"] == "1" {
		return errors.New("new privileges are given up")
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/usr/bin", &fs); err == nil && fs.Flags&unix.ST_NOSUID != 0 {
		return errors.New("/usr/bin is mounted nosuid")
	}
	return nil
}
