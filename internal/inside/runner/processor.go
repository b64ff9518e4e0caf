package runner

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// worked adds up the processor time of the sandbox's programs. Two sums are kept, each of which may miss something and neither
// counts anything twice: what the living have used with what their parents were told of their children, and what each was
// seen to use from look to look, which also counts a child of whose end nobody was told.
type worked struct {
	mu   sync.Mutex
	last map[int]time.Duration // of a process itself, at the last look
	seen time.Duration         // from look to look
	most time.Duration
}

// tick is the unit of /proc: 100 a second for every program, whatever the kernel's own is.
const tick = time.Second / 100

// look takes the processes of this moment and returns what was used up to now, at the least.
func (w *worked) look(pids []int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[int]time.Duration, len(pids))
	var told time.Duration
	for _, pid := range pids {
		own, children, ok := processorOf(pid)
		if !ok {
			continue
		}
		now[pid] = own
		told += own + children
		if before := w.last[pid]; own >= before {
			w.seen += own - before
		} else {
			w.seen += own // another process, with the number of one that has ended
		}
	}
	w.last = now
	var ours unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &ours); err == nil {
		told += time.Duration(ours.Utime.Nano() + ours.Stime.Nano())
	}
	w.most = max(w.most, told, w.seen)
	return w.most
}

// processorOf is what a process has used itself, and what its children had that it has waited for.
func processorOf(pid int) (own, children time.Duration, ok bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name in parentheses may hold anything, also ") 1 2".
	text := string(raw)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const user, system, childrenUser, childrenSystem = 11, 12, 13, 14
	if len(fields) <= childrenSystem {
		return 0, 0, false
	}
	at := func(i int) time.Duration {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return time.Duration(n) * tick
	}
	return at(user) + at(system), at(childrenUser) + at(childrenSystem), true
}
