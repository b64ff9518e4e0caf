package landing

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// ErrLocked is ErrBusy where the kernel's lock is held by a process that is no landing of this
// home's: anybody who can read a git directory can take it, so it may never be given back.
var ErrLocked = fmt.Errorf("%w", ErrBusy)

// locked says who holds the lock on a folder, as far as the kernel tells.
func locked(folder *os.File) error {
	dir := inert.Path(folder.Name())
	pid := holder(folder)
	if pid <= 0 {
		return problem.Case(ErrLocked, "cat /proc/locks", "a process that cannot be seen from here holds a lock (flock) on %s", dir)
	}
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // it may be gone by now
	return problem.Case(ErrLocked, fmt.Sprintf("ps -f -p %d", pid),
		"process %d (%q) holds a lock (flock) on %s", pid, strings.TrimSpace(string(name)), dir)
}

// holder returns the process that holds a flock on an open file; 0 if none is told.
func holder(file *os.File) int {
	var st unix.Stat_t
	if unix.Fstat(int(file.Fd()), &st) != nil {
		return 0
	}
	table, _ := os.ReadFile("/proc/locks") // without it nobody is told
	where := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(table)) {
		// 1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF; who waits has "->" after the number.
		f := strings.Fields(line)
		if len(f) > 5 && f[1] == "FLOCK" && f[5] == where {
			pid, _ := strconv.Atoi(f[4])
			return pid
		}
	}
	return 0
}
