package bwrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/cgroup"
	"sallyport/internal/base/disk"
	"sallyport/internal/port/sandbox"
)

// Kinds of control group, as a report names them.
const (
	cgroup2     = "cgroup2"
	cgroup1     = "cgroup1"
	rlimitWatch = "rlimit+watch"
)

// layout says where control groups can be made; empty strings where they cannot.
// The folders are this home's own and there only while it has a sandbox.
type layout struct {
	unified string // folder of version 2 for this home's sandboxes
	memory  string // version 1
	pids    string // version 1
	kind    struct{ memory, pids string }
}

// folders lists what there is of it.
func (l layout) folders() []string {
	return slices.DeleteFunc([]string{l.unified, l.memory, l.pids}, func(dir string) bool { return dir == "" })
}

// findLayout makes this home's folders and sees what a group in them offers.
// Everything it cannot have is left to init's watch; that is no error.
func findLayout(ops disk.Ops, root string) layout {
	name := groupName(root)
	var l layout
	l.kind.memory, l.kind.pids = rlimitWatch, rlimitWatch
	mounts, own := cgroup.Mounts(), cgroup.Own()
	if at, ok := mounts[""]; ok {
		for _, parent := range unifiedParents(at, own[""]) {
			if dir, ok := makeGroup(ops, parent, name); ok {
				l.unified = dir
				break
			}
		}
	}
	if l.unified != "" {
		handDown(ops, filepath.Dir(l.unified))
		handDown(ops, l.unified)
		on, _ := os.ReadFile(filepath.Join(l.unified, "cgroup.subtree_control"))
		for _, controller := range strings.Fields(string(on)) {
			switch controller {
			case "memory":
				l.kind.memory = cgroup2
			case "pids":
				l.kind.pids = cgroup2
			}
		}
	}
	if os.Geteuid() == 0 {
		// Only root may make groups of version 1.
		first := func(controller string, kind *string) string {
			at, ok := mounts[controller]
			if !ok || *kind != rlimitWatch {
				return ""
			}
			dir, ok := makeGroup(ops, filepath.Join(at, own[controller]), name)
			if ok {
				*kind = cgroup1
			}
			return dir
		}
		l.memory, l.pids = first("memory", &l.kind.memory), first("pids", &l.kind.pids)
	}
	for _, dir := range l.folders() {
		sweep(ops, dir)
		leave(ops, dir)
	}
	return l
}

// handDown lets groups below dir limit memory and processes, where dir itself may.
func handDown(ops disk.Ops, dir string) {
	_ = writeGroup(ops, dir, "cgroup.subtree_control", "+memory +pids")
}

// leave removes the home's folder if no sandbox is in it.
func leave(ops disk.Ops, dir string) {
	_ = ops.Do("cgroup:leave", func() error { return unix.Rmdir(dir) })
}

// unifiedParents lists where version 2 groups may be made. Root takes the top,
// where controllers are handed down; a person, what their session manager gave them.
func unifiedParents(at, own string) []string {
	if os.Geteuid() == 0 {
		return []string{at, filepath.Join(at, own)}
	}
	if own == "" || own == "/" {
		return nil
	}
	return []string{filepath.Join(at, filepath.Dir(own)), filepath.Join(at, own)}
}

// makeGroup makes parent/name and shows that a process may be started in a group below it.
func makeGroup(ops disk.Ops, parent, name string) (string, bool) {
	dir := filepath.Join(parent, name)
	err := ops.Do("cgroup:make", func() error {
		err := os.Mkdir(dir, 0o755)
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	})
	if err != nil || unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK) != nil || unix.Access(dir, unix.W_OK) != nil {
		return "", false
	}
	return dir, true
}

func writeGroup(ops disk.Ops, dir, file, text string) error {
	return ops.Do("cgroup:write", func() error {
		f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	})
}

// sweep removes what a daemon that is gone left behind.
func sweep(ops disk.Ops, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		text, _, ok := strings.Cut(e.Name(), "-")
		pid, err := strconv.Atoi(text)
		if !ok || err != nil || pid == os.Getpid() {
			continue
		}
		if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
			continue // somebody lives; their next start sweeps
		}
		left := filepath.Join(dir, e.Name())
		_ = writeGroup(ops, left, "cgroup.kill", "1") // absent in version 1
		_ = removeGroup(ops, left, time.Second)
	}
}

// groups are one sandbox's control groups.
type groups struct {
	ops     disk.Ops
	unified string
	memory  string // folder that limits memory; of either version
	pids    string
	kind    struct{ memory, pids string }
	into    *os.File   // version 2 folder to be born in; nil without
	join    []*os.File // version 1 task files that the launcher writes itself into
}

func (l layout) make(ops disk.Ops, id string, limits sandbox.Limits) (*groups, error) {
	g := &groups{ops: ops, kind: l.kind}
	err := g.fill(l, strconv.Itoa(os.Getpid())+"-"+id, limits)
	if err != nil {
		g.close()
		return nil, errors.Join(fmt.Errorf("make control groups: %w", err), g.remove())
	}
	return g, nil
}

func (g *groups) fill(l layout, name string, limits sandbox.Limits) error {
	mkdir := func(parent string) (string, error) {
		dir := filepath.Join(parent, name)
		for tries := 0; ; tries++ {
			err := g.ops.Do("cgroup:make", func() error { return os.Mkdir(dir, 0o755) })
			if !errors.Is(err, os.ErrNotExist) || tries == 100 {
				return dir, err
			}
			// The last sandbox of this home took the folder with it.
			if _, ok := makeGroup(g.ops, filepath.Dir(parent), filepath.Base(parent)); ok && parent == l.unified {
				handDown(g.ops, parent)
			}
		}
	}
	var err error
	if l.unified != "" {
		if g.unified, err = mkdir(l.unified); err != nil {
			return err
		}
		g.handed(l)
		if g.into, err = os.OpenFile(g.unified, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
			return err
		}
	}
	old := func(parent string) (string, error) {
		dir, err := mkdir(parent)
		if err != nil {
			return "", err
		}
		f, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
		if err == nil {
			g.join = append(g.join, f)
		}
		return dir, err
	}
	memory, pids := strconv.FormatInt(limits.MemoryBytes, 10), strconv.Itoa(limits.ProcessesMax+ourTasks)
	switch l.kind.memory {
	case cgroup2:
		g.memory = g.unified
		err = errors.Join(writeGroup(g.ops, g.memory, "memory.max", memory), optional(writeGroup(g.ops, g.memory, "memory.swap.max", "0")))
	case cgroup1:
		if g.memory, err = old(l.memory); err == nil {
			err = errors.Join(writeGroup(g.ops, g.memory, "memory.limit_in_bytes", memory),
				optional(writeGroup(g.ops, g.memory, "memory.memsw.limit_in_bytes", memory)))
		}
	}
	if err != nil {
		return err
	}
	switch l.kind.pids {
	case cgroup2:
		g.pids = g.unified
	case cgroup1:
		if g.pids, err = old(l.pids); err != nil {
			return err
		}
	default:
		return nil
	}
	return writeGroup(g.ops, g.pids, "pids.max", pids)
}

// handed sees to it that the group has what the layout promises: who made the home's folder anew, at the same time, may not have come as
// far as handing down. What is handed down then is there in groups that were made before, too.
func (g *groups) handed(l layout) {
	for _, promised := range []struct{ kind, file string }{{l.kind.memory, "memory.max"}, {l.kind.pids, "pids.max"}} {
		if promised.kind != cgroup2 {
			continue
		}
		if _, err := os.Stat(filepath.Join(g.unified, promised.file)); errors.Is(err, os.ErrNotExist) {
			handDown(g.ops, l.unified)
			return
		}
	}
}

// ourTasks is the room that bwrap and the threads of init take in the count of processes.
const ourTasks = 24

// optional forgives a file that this kernel does not have.
func optional(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// close gives up the descriptors that only the start needs.
func (g *groups) close() {
	for _, f := range append(g.join, g.into) {
		if f != nil {
			f.Close()
		}
	}
	g.join, g.into = nil, nil
}

// remove deletes the groups once they are empty.
func (g *groups) remove() error {
	var errs []error
	seen := map[string]bool{"": true}
	for _, dir := range []string{g.unified, g.memory, g.pids} {
		if !seen[dir] {
			seen[dir] = true
			errs = append(errs, removeGroup(g.ops, dir, 5*time.Second))
			leave(g.ops, filepath.Dir(dir))
		}
	}
	return errors.Join(errs...)
}

func removeGroup(ops disk.Ops, dir string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		err := ops.Do("cgroup:remove", func() error { return unix.Rmdir(dir) })
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// processor is the time that the group's programs have used; version 2 counts it whichever controllers are on.
func (g *groups) processor() (time.Duration, bool) {
	if g.unified == "" {
		return 0, false
	}
	used, ok := cgroup.Number(g.unified, "cpu.stat", "usage_usec")
	return time.Duration(used) * time.Microsecond, ok
}

// ran reports whether the group's programs may have used the processor since it had counted before, and what it counts now. Who used none has
// written nothing, begun nothing and been refused nothing: an agent that waits for its model is not looked at.
func (g *groups) ran(before time.Duration) (now time.Duration, ran bool) {
	now, counted := g.processor()
	return now, !counted || now != before
}

// outOfMemory reports the highest use if the kernel had to kill for memory.
func (g *groups) outOfMemory() (int64, bool) {
	var kills, peak int64
	switch g.kind.memory {
	case cgroup2:
		if kills, _ = cgroup.Number(g.memory, "memory.events", "oom_kill"); kills > 0 {
			peak, _ = cgroup.Number(g.memory, "memory.peak", "")
		}
	case cgroup1:
		if kills, _ = cgroup.Number(g.memory, "memory.oom_control", "oom_kill"); kills > 0 {
			peak, _ = cgroup.Number(g.memory, "memory.max_usage_in_bytes", "")
		}
	}
	return peak, kills > 0
}

// forksRefused returns how often the limit of processes said no.
func (g *groups) forksRefused() int64 {
	if g.kind.pids == rlimitWatch {
		return 0
	}
	n, _ := cgroup.Number(g.pids, "pids.events", "max")
	return n
}
