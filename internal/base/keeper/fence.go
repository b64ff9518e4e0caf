package keeper

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sallyport/internal/base/cgroup"
)

// Limits are how much a version on trial may use, with all that it starts. None = it is not limited here.
type Limits struct {
	Memory    int64 `json:"memory,omitzero"`    // bytes, with swap
	Processes int64 `json:"processes,omitzero"` // with threads
}

// limitsHere leaves a quarter of this machine's memory to the keeper, to whoever looks and to the way back. A daemon at work has some tens
// of threads, and each of its sandboxes some hundreds of processes at the most: thousands at once are a fault. A machine that can have
// fewer keeps half of them.
func limitsHere() Limits {
	l := Limits{Memory: 1 << 30, Processes: processesOf("/proc/sys/kernel")} // so much memory where the machine cannot be asked
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		l.Memory = int64(info.Totalram) * int64(info.Unit) / 4 * 3
	}
	return l
}

// processesOf is how many processes a version on trial may have on a machine whose kernel has its settings in dir.
func processesOf(dir string) int64 {
	most := int64(4096)
	for _, name := range []string{"pid_max", "threads-max"} {
		if n, ok := cgroup.Number(dir, name, ""); ok {
			most = min(most, n/2)
		}
	}
	return most
}

// fence is the control group that a version on trial is born in, with all that it starts: the kernel holds it to the limits, and names
// what is in it, however it has come about. In version 1 there are two, one for each limit. A fence of no groups is none, and limits
// nothing.
type fence struct {
	Limits
	memory, processes string   // folders; one and the same in version 2
	tasks             []string // version 1: files that bring a thread of the keeper back to where it was
	back              []string // files that bring another process there
}

// Names of control groups.
const fenceName, leafName = "sallyport-trial-", "sallyport-keeper"

func nameOf(home string) string {
	sum := sha256.Sum256([]byte(home))
	return fenceName + hex.EncodeToString(sum[:4])
}

// findFence returns the fence that can be made where groups are mounted and this process has its own, and why there is none otherwise.
// leftover says what to do with what lies in one that an earlier keeper has left.
func findFence(mounts, own map[string]string, home string, most Limits, leftover func(*fence) error) (*fence, error) {
	name := nameOf(home)
	var errs []error
	for _, find := range []func() (*fence, error){
		func() (*fence, error) { return unifiedFence(mounts, own, name, os.Getenv(InService) != "") },
		func() (*fence, error) { return oldFence(mounts, own, name) },
	} {
		f, err := find()
		if err == nil {
			f.Limits = most
			err = errors.Join(leftover(f), f.make(), f.remove())
		}
		if err == nil {
			return f, nil
		}
		if f != nil {
			_ = f.remove()
		}
		errs = append(errs, err)
	}
	return &fence{}, errors.Join(errs...)
}

// unifiedFence is one of version 2. There only a group without processes of its own hands its controllers down. So it lies beside the
// keeper's; and a keeper that a service manager has started, to which the group of the service belongs, first goes into one below that.
func unifiedFence(mounts, own map[string]string, name string, service bool) (*fence, error) {
	at, mounted := mounts[""]
	if !mounted {
		return nil, errors.New("there are no control groups of version 2")
	}
	mine := filepath.Join(at, own[""])
	parent := filepath.Dir(mine)
	if mine == filepath.Clean(at) || service && filepath.Base(mine) != leafName {
		parent = mine
	}
	raw, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if has := strings.Fields(string(raw)); err != nil || !slices.Contains(has, "memory") || !slices.Contains(has, "pids") {
		return nil, errors.Join(err, fmt.Errorf("%s does not limit memory and processes", parent))
	}
	if parent == mine && mine != filepath.Clean(at) {
		mine = filepath.Join(parent, leafName)
		if err := errors.Join(made(mine), put(mine, "cgroup.procs", "0")); err != nil {
			return nil, err
		}
	}
	if err := put(parent, "cgroup.subtree_control", "+memory +pids"); err != nil {
		return nil, err
	}
	dir := filepath.Join(parent, name)
	return &fence{memory: dir, processes: dir, back: []string{filepath.Join(mine, "cgroup.procs")}}, nil
}

// oldFence is one of version 1, below the keeper's own groups. Only root can make it.
func oldFence(mounts, own map[string]string, name string) (*fence, error) {
	memory, is := mounts["memory"]
	pids, are := mounts["pids"]
	if !is || !are {
		return nil, errors.New("there are no control groups of version 1 for memory and processes")
	}
	memory, pids = filepath.Join(memory, own["memory"]), filepath.Join(pids, own["pids"])
	return &fence{
		memory: filepath.Join(memory, name), processes: filepath.Join(pids, name),
		tasks: []string{filepath.Join(memory, "tasks"), filepath.Join(pids, "tasks")},
		back:  []string{filepath.Join(memory, "cgroup.procs"), filepath.Join(pids, "cgroup.procs")},
	}, nil
}

func (f *fence) none() bool { return f.memory == "" }

// unified reports whether it is of version 2.
func (f *fence) unified() bool { return f.memory == f.processes }

// make makes the groups, with the limits.
func (f *fence) make() error {
	memory, processes := strconv.FormatInt(f.Memory, 10), strconv.FormatInt(f.Processes, 10)
	err := errors.Join(made(f.memory), made(f.processes), put(f.processes, "pids.max", processes))
	if f.unified() {
		return errors.Join(err, put(f.memory, "memory.max", memory),
			optional(put(f.memory, "memory.swap.max", "0")), optional(put(f.memory, "memory.oom.group", "1")))
	}
	return errors.Join(err, put(f.memory, "memory.limit_in_bytes", memory), optional(put(f.memory, "memory.memsw.limit_in_bytes", memory)))
}

// lift takes the limits away, and leaves the groups: sandboxes may have theirs below. A group that is gone limits nothing.
func (f *fence) lift() error {
	if f.none() {
		return nil
	}
	err := lifted(f.processes, "pids.max", "max")
	if f.unified() {
		return errors.Join(err, lifted(f.memory, "memory.max", "max"),
			optional(put(f.memory, "memory.swap.max", "max")), optional(put(f.memory, "memory.oom.group", "0")))
	}
	return errors.Join(err, optional(put(f.memory, "memory.memsw.limit_in_bytes", "-1")), lifted(f.memory, "memory.limit_in_bytes", "-1"))
}

// lifted writes to a group, unless it is gone.
func lifted(dir, name, value string) error {
	err := put(dir, name, value)
	if _, gone := os.Stat(dir); errors.Is(gone, fs.ErrNotExist) {
		return nil
	}
	return err
}

// start starts a process within: no moment passes in which it is not. What the one before has left, which was kept, runs on outside.
func (f *fence) start(cmd *exec.Cmd) error {
	if err := f.leave(); err != nil {
		return err
	}
	if err := f.make(); err != nil {
		return err
	}
	return f.bear(cmd)
}

func (f *fence) bear(cmd *exec.Cmd) error {
	if f.unified() {
		dir, err := os.Open(f.memory)
		if err != nil {
			return err
		}
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		return cmd.Start()
	}
	// A process begins in the groups of the thread that starts it. That thread goes there and back; no other does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var back []*os.File
	for _, path := range f.tasks { // before it goes, the way back is open
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer file.Close()
		back = append(back, file)
	}
	err := errors.Join(put(f.memory, "tasks", "0"), put(f.processes, "tasks", "0"))
	if err == nil {
		err = cmd.Start()
	}
	for _, file := range back {
		_, failed := file.WriteString("0")
		err = errors.Join(err, failed)
	}
	if err != nil && cmd.Process != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return err
}

// reached says which limit was; "" = none.
func (f *fence) reached() string {
	if f.none() {
		return ""
	}
	events := "memory.oom_control"
	if f.unified() {
		events = "memory.events"
	}
	if n, _ := cgroup.Number(f.memory, events, "oom_kill"); n > 0 {
		return fmt.Sprintf("the kernel ended a process for memory, of which a version on trial may use %d MiB", f.Memory>>20)
	}
	if n, _ := cgroup.Number(f.processes, "pids.events", "max"); n > 0 {
		return fmt.Sprintf("it wanted more than %d processes, which is all that a version on trial may have", f.Processes)
	}
	return ""
}

// end ends all that is within, and removes the groups.
func (f *fence) end() error {
	return f.empty(f.kill)
}

// kill ends a process if it is within: by now its number may be another's.
func (f *fence) kill(pid int) {
	_ = put(f.processes, "pids.max", "0") // nobody outruns this
	p, err := os.FindProcess(pid)         // it holds on to this one
	if err != nil {
		return
	}
	defer func() { _ = p.Release() }()
	raw, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cgroup"))
	if strings.Contains(string(raw), "/"+filepath.Base(f.memory)) {
		_ = p.Kill()
	}
}

// leave removes the groups of a daemon that is no more on trial and has ended, and lets what it has left run on outside.
func (f *fence) leave() error {
	return f.empty(func(pid int) {
		for _, path := range f.back {
			_ = put(filepath.Dir(path), filepath.Base(path), strconv.Itoa(pid))
		}
	})
}

// empty does something with all that is within until nothing is, and removes the groups.
func (f *fence) empty(with func(pid int)) error {
	if f.none() {
		return nil
	}
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		for _, dir := range f.folders() {
			raw, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			for _, field := range strings.Fields(string(raw)) {
				if pid, err := strconv.Atoi(field); err == nil && pid != os.Getpid() {
					with(pid)
				}
			}
		}
		err := f.remove()
		if err == nil || time.Since(began) > survivorsMax {
			return err
		}
	}
}

// folders are its groups and all below, which sandboxes have made, those deepest down first.
func (f *fence) folders() (dirs []string) {
	for _, top := range slices.Compact([]string{f.memory, f.processes}) {
		_ = filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				dirs = append(dirs, path)
			}
			return nil // what is gone meanwhile is no matter
		})
	}
	slices.Reverse(dirs)
	return dirs
}

// remove removes the groups, which have to be empty.
func (f *fence) remove() (err error) {
	for _, dir := range f.folders() {
		if failed := syscall.Rmdir(dir); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = fmt.Errorf("remove control group %s: %w", dir, failed)
		}
	}
	return err
}

// made makes a group, if it is not there.
func made(dir string) error {
	if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// put writes to a file of a group.
func put(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// optional forgives a file that this kernel does not have, or does not let anybody write.
func optional(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
