package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/port/sandbox"
)

// How often init looks at its processes: often when memory runs short, and ever more seldom while they wait and the kernel holds them.
const (
	lookCalm    = 100 * time.Millisecond
	lookTense   = 20 * time.Millisecond
	lookResting = time.Second
	spareTasks  = 24 // our own threads count in the same user namespace

	stackBytes = 8 << 20
	stacksMax  = 128     // in one process, beside what else it has
	entryBytes = 1 << 10 // of memory that the kernel takes for a file of a tmpfs, however empty
)

// hold sets what the kernel holds per process and starts the watch for the rest.
// What would take a thread or memory from this process itself is set on the
// programs only (see limitProgram): an init that cannot go on ends the sandbox without a reason.
func (in *initProcess) hold(w sandbox.Watching) error {
	in.watching = w
	_, in.before = scratchHeld()
	// One more than the limit, so that whoever takes it is seen to have broken it.
	var most unix.Rlimit // of this machine, or of the session that the daemon began in: it cannot be raised here
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &most); err != nil {
		return fmt.Errorf("limit descriptors: %w", err)
	}
	n := min(uint64(w.DescriptorsMax)+1, most.Max)
	files := unix.Rlimit{Cur: n, Max: n}
	// Through package syscall, which would else give children the limits this process began with.
	if err := setrlimit(unix.RLIMIT_NOFILE, files); err != nil {
		return fmt.Errorf("limit descriptors: %w", err)
	}
	go func() {
		for {
			pause := in.look()
			time.Sleep(pause)
		}
	}()
	return nil
}

// tasksMax is where the kernel refuses another task, whatever else holds; 0 = nowhere. Where a
// control group counts what it refuses, that comes first.
func (in *initProcess) tasksMax() uint64 {
	n := in.watching.ProcessesMax
	switch {
	case n <= 0:
		return 0
	case in.watching.Grouped:
		n += 2 * spareTasks
	}
	return uint64(n + spareTasks)
}

// startLimited starts a program under the limit on tasks: one that forks at once would be ahead of limitProgram, and
// all that it had forked by then without a limit for ever. Our own limit is as it was afterwards.
func (in *initProcess) startLimited(start func() (pid int, err error)) (int, error) {
	n := in.tasksMax()
	if n == 0 {
		return start()
	}
	var own syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		return 0, fmt.Errorf("read the limit on tasks: %w", err)
	}
	readyThreads()
	if err := setrlimit(unix.RLIMIT_NPROC, unix.Rlimit{Cur: min(n, own.Max), Max: own.Max}); err != nil {
		return 0, fmt.Errorf("limit tasks: %w", err)
	}
	pid, err := start()
	if back := syscall.Setrlimit(unix.RLIMIT_NPROC, &own); back != nil {
		err = errors.Join(err, fmt.Errorf("take back the limit on our own tasks: %w", back))
	}
	return pid, err
}

// threadsReady is how many threads stand by while our own limit is that of a program that may be forking already. Go cannot do without a
// thread that it wants: it ends the process, and the sandbox with it.
const threadsReady = 6

// readyThreads makes sure of so many threads that do nothing; Go keeps them.
func readyThreads() {
	var locked, gone sync.WaitGroup
	enough := make(chan struct{})
	locked.Add(threadsReady)
	for range threadsReady {
		gone.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			<-enough
		})
	}
	locked.Wait()
	close(enough)
	gone.Wait()
}

// limitProgram sets on a program that was just started what its descendants inherit.
func (in *initProcess) limitProgram(pid int) {
	set := func(what int, to uint64) {
		// Gone already, or a wall that the watch stands before anyway.
		_ = unix.Prlimit(pid, what, &unix.Rlimit{Cur: to, Max: to}, nil)
	}
	if n := in.tasksMax(); n > 0 {
		set(unix.RLIMIT_NPROC, n)
	}
	if n := in.watching.MemoryBytes; n > 0 {
		// For what grows faster than anyone can look. A thread's stack counts whole, touched or not.
		set(unix.RLIMIT_DATA, 2*uint64(n)+stackBytes*uint64(min(in.watching.ProcessesMax, stacksMax)))
	}
}

// look counts tasks, descriptors and memory once and returns how long it may be blind.
func (in *initProcess) look() time.Duration {
	pids, err := processes()
	if err != nil {
		in.broken(sandbox.Limit{Name: sandbox.Memory, Value: "watched", Observed: "processes cannot be listed: " + err.Error()})
	}
	var now sight
	var files int
	for _, pid := range pids {
		p, ok := examine(pid)
		if !ok {
			continue
		}
		now.tasks += p.threads
		now.resident += p.residentBytes
		if p.tableSize >= in.watching.DescriptorsMax {
			files = max(files, countFiles(pid))
		}
	}
	if n := in.watching.ProcessesMax; n > 0 && now.tasks > n {
		in.broken(sandbox.Limit{Name: sandbox.Processes, Value: strconv.Itoa(n), Observed: strconv.Itoa(now.tasks) + " at one time"})
	}
	if n := in.watching.DescriptorsMax; files > n {
		in.broken(sandbox.Limit{Name: sandbox.Descriptors, Value: strconv.Itoa(n) + " per process", Observed: strconv.Itoa(files) + " in one process"})
	}
	if _, now.scratch = scratchHeld(); in.watching.FilesMax > 0 && now.scratch-in.before > int64(in.watching.FilesMax) {
		in.broken(sandbox.Limit{Name: sandbox.Files, Value: strconv.Itoa(in.watching.FilesMax),
			Observed: strconv.FormatInt(now.scratch-in.before, 10) + " in /tmp, /dev/shm and the home folder"})
	}
	if now.used = in.worked.look(pids); in.watching.Processor > 0 && now.used > in.watching.Processor {
		in.broken(*sandbox.OverProcessor(in.watching.Processor, now.used))
	}
	if in.watching.MemoryBytes > 0 {
		return in.lookAtMemory(pids, now.resident)
	}
	return in.rest(now)
}

// sight is what one look has seen.
type sight struct {
	tasks    int
	resident int64 // bytes
	scratch  int64 // entries
	used     time.Duration
}

// rest returns how long init may be blind to processes whose memory a control group holds: twice as long each time that nothing has changed,
// if one holds their number as well. Then the kernel refuses what is too much of both, and a look only finds its name. Of processor time
// the kernel refuses nothing: where no group counts it for the driver, what begins to work after a rest may have a second more.
func (in *initProcess) rest(now sight) time.Duration {
	if now != in.seen || !in.watching.Grouped {
		in.seen, in.pause = now, lookCalm
	} else {
		in.pause = min(2*in.pause, lookResting)
	}
	return in.pause
}

// lookAtMemory holds memory where no control group does, and returns how long it may be blind.
// Files of the scratch space, shared segments and what only the driver sees are memory, whoever has them open.
func (in *initProcess) lookAtMemory(pids []int, resident int64) time.Duration {
	limit := in.watching.MemoryBytes
	scratch, _ := scratchHeld()
	held := scratch + segmentsHeld() + in.unseen.Load()
	if resident+held > limit {
		// Pages that several processes share were counted for each of them, and a mapped file twice.
		own, shared := proportional(pids)
		if used := own + max(shared, held); used > limit {
			in.broken(sandbox.Limit{Name: sandbox.Memory, Value: sandbox.Bytes(limit), Observed: sandbox.Bytes(used)})
		}
	}
	if resident+held > limit/3 {
		return lookTense
	}
	return lookCalm
}

// scratchHeld is what the files in /tmp, /dev/shm and the home folder take of memory, and how many they are: one tmpfs.
func scratchHeld() (bytes, files int64) {
	var fs unix.Statfs_t
	if err := unix.Statfs("/tmp", &fs); err != nil {
		return 0, 0
	}
	files = int64(fs.Files - fs.Ffree)
	return int64(fs.Blocks-fs.Bfree)*fs.Bsize + files*entryBytes, files
}

// segmentsHeld is what System V shared memory takes, attached or not.
func segmentsHeld() (sum int64) {
	raw, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0 // a kernel without them
	}
	column := -1
	for line := range bytes.Lines(raw) {
		fields := strings.Fields(string(line))
		if column < 0 {
			column = slices.Index(fields, "rss")
			if column < 0 {
				return 0
			}
			continue
		}
		if column < len(fields) {
			n, _ := strconv.ParseInt(fields[column], 10, 64)
			sum += n
		}
	}
	return sum
}

// broken names the limit and ends everything.
func (in *initProcess) broken(l sandbox.Limit) {
	in.tell(sandbox.Event{Limit: &l})
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

// countFiles returns how many descriptors a process has, also one that hides them.
func countFiles(pid int) int {
	path := "/proc/" + strconv.Itoa(pid) + "/fd"
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err == nil && st.Size > 0 { // since Linux 6.2
		return int(st.Size)
	}
	names, err := os.ReadDir(path)
	if err != nil {
		return 0
	}
	return len(names)
}

// proportional sums memory, in bytes, with pages divided among those who share them: what is the processes' own or
// a program's file, and what lives in shared memory. Where a process hides its map, what it shares with
// nobody counts, and nothing else.
func proportional(pids []int) (own, shared int64) {
	for _, pid := range pids {
		base := "/proc/" + strconv.Itoa(pid)
		if raw, err := os.ReadFile(base + "/smaps_rollup"); err == nil {
			all, shmem := kilobytes(raw, "Pss:"), kilobytes(raw, "Pss_Shmem:")
			own, shared = own+all-shmem, shared+shmem
			continue
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
		own += (all - shared) * int64(os.Getpagesize())
	}
	return own, shared
}

// kilobytes returns, in bytes, what stands behind a key at the beginning of a line; 0 if it does not.
func kilobytes(raw []byte, key string) int64 {
	_, rest, ok := bytes.Cut(raw, []byte("\n"+key))
	if !ok {
		return 0
	}
	field, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
	kb, _ := strconv.ParseInt(string(field), 10, 64)
	return kb << 10
}
