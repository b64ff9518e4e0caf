package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/sandbox"
)

// How often init looks at its processes: often when memory runs short.
const (
	lookCalm   = 100 * time.Millisecond
	lookTense  = 20 * time.Millisecond
	spareTasks = 16 // our own threads count in the same user namespace
)

// hold sets what the kernel holds per process and starts the watch for the rest.
// What would take a thread or memory from this process itself is set on the
// programs only (see bridle): an init that cannot go on ends the sandbox without a reason.
func (k *king) hold(w sandbox.Watching) error {
	k.watching = w
	files := unix.Rlimit{Cur: uint64(w.DescriptorsMax), Max: uint64(w.DescriptorsMax)}
	// Through package syscall, which would else give children the limits this process began with.
	if err := setrlimit(unix.RLIMIT_NOFILE, files); err != nil {
		return fmt.Errorf("limit descriptors: %w", err)
	}
	if err := setrlimit(unix.RLIMIT_CORE, unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	go func() {
		for {
			pause := k.look()
			time.Sleep(pause)
		}
	}()
	return nil
}

// born starts a program under the limit on tasks: one that forks at once would be ahead of bridle, and
// all that it had forked by then without a limit for ever. Our own limit is as it was afterwards.
func (k *king) born(start func() (pid int, err error)) (int, error) {
	n := k.watching.ProcessesMax
	if n <= 0 {
		return start()
	}
	var own syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return 0, fmt.Errorf("read the limit on tasks: %w", err)
	}
	if err := setrlimit(unix.RLIMIT_NPROC, unix.Rlimit{Cur: min(uint64(n+spareTasks), own.Max), Max: own.Max}); err != nil {
		return 0, fmt.Errorf("limit tasks: %w", err)
	}
	pid, err := start()
	if back := syscall.Setrlimit(unix.RLIMIT_NPROC, &own); back != nil {
		err = errors.Join(err, fmt.Errorf("take back the limit on our own tasks: %w", back))
	}
	return pid, err
}

// bridle sets on a program that was just started what its descendants inherit.
func (k *king) bridle(pid int) {
	set := func(what int, to uint64) {
		// Gone already, or a wall that the watch stands before anyway.
		_ = unix.Prlimit(pid, what, &unix.Rlimit{Cur: to, Max: to}, nil)
	}
	if n := k.watching.ProcessesMax; n > 0 {
		set(unix.RLIMIT_NPROC, uint64(n+spareTasks))
	}
	if n := k.watching.MemoryBytes; n > 0 {
		set(unix.RLIMIT_DATA, 2*uint64(n)) // for what grows faster than anyone can look
	}
}

// look counts tasks, descriptors and memory once and returns how long it may be blind.
func (k *king) look() time.Duration {
	pids, err := processes()
	if err != nil {
		k.broken(sandbox.Limit{Name: "memory", Value: "watched", Observed: "processes cannot be listed: " + err.Error()})
	}
	var tasks, files int
	var resident int64
	for _, pid := range pids {
		p, ok := examine(pid)
		if !ok {
			continue
		}
		tasks += p.threads
		resident += p.residentBytes
		if p.tableSize >= k.watching.DescriptorsMax {
			files = max(files, countFiles(pid))
		}
	}
	k.mu.Lock()
	k.peak.tasks, k.peak.files = max(k.peak.tasks, tasks), max(k.peak.files, files)
	k.mu.Unlock()
	if n := k.watching.ProcessesMax; n > 0 && tasks > n+spareTasks { // some got past the kernel's limit
		k.broken(sandbox.Limit{Name: "processes", Value: strconv.Itoa(n), Observed: strconv.Itoa(tasks)})
	}
	limit := k.watching.MemoryBytes
	if limit <= 0 {
		return lookCalm
	}
	if resident > limit {
		// Pages that several processes share were counted for each of them.
		if used := proportional(pids); used > limit {
			k.broken(sandbox.Limit{Name: "memory", Value: sandbox.Bytes(limit), Observed: sandbox.Bytes(used)})
		}
	}
	if resident > limit/3 {
		return lookTense
	}
	return lookCalm
}

// broken names the limit and ends everything.
func (k *king) broken(l sandbox.Limit) {
	k.tell(sandbox.Event{Limit: &l})
	syscall.Exit(1)
}

// processes lists every process of the sandbox but this one.
func processes() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != 1 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

type process struct {
	threads       int
	residentBytes int64
	tableSize     int // room in the descriptor table, a power of two
}

// examine reads one process; false if it is gone.
func examine(pid int) (process, bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return process{}, false
	}
	var p process
	for line := range bytes.Lines(raw) {
		name, value, _ := strings.Cut(string(line), ":")
		number, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		switch name {
		case "FDSize":
			p.tableSize = int(number)
		case "VmRSS":
			p.residentBytes = number << 10
		case "Threads":
			p.threads = int(number)
		}
	}
	return p, true
}

func countFiles(pid int) int {
	names, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return 0
	}
	return len(names)
}

// proportional sums memory with shared pages divided among those who share them.
// Where a process hides its map, its resident size without file pages counts whole.
func proportional(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		base := "/proc/" + strconv.Itoa(pid)
		if raw, err := os.ReadFile(base + "/smaps_rollup"); err == nil {
			if _, rest, ok := bytes.Cut(raw, []byte("\nPss:")); ok {
				field, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
				kb, _ := strconv.ParseInt(string(field), 10, 64)
				sum += kb << 10
				continue
			}
		}
		raw, err := os.ReadFile(base + "/statm")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw))
		if len(fields) < 3 {
			continue
		}
		all, _ := strconv.ParseInt(fields[1], 10, 64)
		shared, _ := strconv.ParseInt(fields[2], 10, 64)
		sum += (all - shared) * int64(os.Getpagesize())
	}
	return sum
}
