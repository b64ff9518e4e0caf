package keeper

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// Groups of files: what is written to a group is tried there on any machine. The kernel's own are in fence_test.go.

// grouped writes the files of a group.
func grouped(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	err := os.MkdirAll(dir, 0o700)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// holds returns what the files of a group hold.
func holds(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		raw, failed := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()], err = string(raw), errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAFenceWritesItsLimitsAndTakesThemAway(t *testing.T) {
	two := map[string]string{"pids.max": "", "memory.max": ""}
	more := map[string]string{"pids.max": "", "memory.max": "", "memory.swap.max": "", "memory.oom.group": ""}
	for _, row := range []struct {
		name             string
		memory, pids     map[string]string // files that the kernel has there; nil pids = one group
		memoryIs, pidsIs map[string]string
		memoryWas        map[string]string // once they are lifted
	}{
		{"version 2", more, nil, map[string]string{"pids.max": "7", "memory.max": "4096", "memory.swap.max": "0", "memory.oom.group": "1"}, nil,
			map[string]string{"pids.max": "max", "memory.max": "max", "memory.swap.max": "max", "memory.oom.group": "0"}},
		{"version 2 without swap", two, nil, map[string]string{"pids.max": "7", "memory.max": "4096"}, nil, map[string]string{"pids.max": "max", "memory.max": "max"}},
		{"version 1", map[string]string{"memory.limit_in_bytes": "", "memory.memsw.limit_in_bytes": ""}, map[string]string{"pids.max": ""},
			map[string]string{"memory.limit_in_bytes": "4096", "memory.memsw.limit_in_bytes": "4096"}, map[string]string{"pids.max": "7"},
			map[string]string{"memory.limit_in_bytes": "-1", "memory.memsw.limit_in_bytes": "-1"}},
		{"version 1 without swap", map[string]string{"memory.limit_in_bytes": ""}, map[string]string{"pids.max": ""},
			map[string]string{"memory.limit_in_bytes": "4096"}, map[string]string{"pids.max": "7"}, map[string]string{"memory.limit_in_bytes": "-1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := t.TempDir()
			f := &fence{Limits: Limits{Memory: 4096, Processes: 7}, memory: filepath.Join(at, "memory"), processes: filepath.Join(at, "memory")}
			grouped(t, f.memory, row.memory)
			if row.pids != nil {
				f.processes = filepath.Join(at, "pids")
				grouped(t, f.processes, row.pids)
			}
			if err := f.make(); err != nil {
				t.Fatal(err)
			}
			if got := holds(t, f.memory); !maps.Equal(got, row.memoryIs) || row.pids != nil && !maps.Equal(holds(t, f.processes), row.pidsIs) {
				t.Errorf("it holds %q", got)
			}
			grouped(t, f.memory, row.memory) // empty ones: what is written does not take the place of all that was
			grouped(t, f.processes, row.pids)
			if err := f.lift(); err != nil {
				t.Fatal(err)
			}
			if got := holds(t, f.memory); !maps.Equal(got, row.memoryWas) || holds(t, f.processes)["pids.max"] != "max" {
				t.Errorf("lifted it holds %q", got)
			}
		})
	}
}

// A version on trial that some limit does not hold would have none: that is no fence.
func TestAFenceWithoutALimitIsNotMade(t *testing.T) {
	for _, missing := range []string{"pids.max", "memory.max", "memory.limit_in_bytes"} {
		at := t.TempDir()
		f := &fence{memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one")}
		if missing == "memory.limit_in_bytes" {
			f.processes = filepath.Join(at, "two")
		}
		files := map[string]string{"pids.max": "", "memory.max": "", "memory.limit_in_bytes": ""}
		delete(files, missing)
		grouped(t, f.memory, files)
		grouped(t, f.processes, files)
		if err := f.make(); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
		if err := f.lift(); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("lifted without %s: %v", missing, err)
		}
	}
}

func TestWhichLimitWasReachedIsSaid(t *testing.T) {
	for _, row := range []struct {
		name       string
		old        bool // version 1
		ends, many string
		says       string
	}{
		{"none", false, "0", "0", ""},
		{"none of version 1", true, "0", "0", ""},
		{"memory", false, "1", "0", "for memory, of which a version on trial may use 384 MiB"},
		{"memory of version 1", true, "2", "0", "for memory"},
		{"processes", false, "0", "1", "more than 200 processes"},
		{"processes of version 1", true, "0", "3", "more than 200 processes"},
		{"both", false, "1", "1", "for memory"},
	} {
		at := t.TempDir()
		f := &fence{Limits: few, memory: filepath.Join(at, "memory"), processes: filepath.Join(at, "memory")}
		events := "memory.events"
		if row.old {
			f.processes, events = filepath.Join(at, "pids"), "memory.oom_control"
		}
		grouped(t, f.memory, map[string]string{events: "oom 9\noom_kill " + row.ends + "\n"})
		grouped(t, f.processes, map[string]string{"pids.events": "max " + row.many + "\n"})
		if got := f.reached(); !strings.Contains(got, row.says) || (got == "") != (row.says == "") {
			t.Errorf("%s: %q", row.name, got)
		}
	}
}

func TestHalfOfAMachinesProcessesAreAVersionsOnTrial(t *testing.T) {
	for _, row := range []struct {
		files map[string]string
		want  int64
	}{
		{nil, 4096},
		{map[string]string{"pid_max": "4194304\n", "threads-max": "63000\n"}, 4096},
		{map[string]string{"pid_max": "1000\n", "threads-max": "63000\n"}, 500},
		{map[string]string{"pid_max": "4194304\n", "threads-max": "600\n"}, 300},
		{map[string]string{"threads-max": "600\n"}, 300},
	} {
		dir := t.TempDir()
		grouped(t, dir, row.files)
		if got := processesOf(dir); got != row.want {
			t.Errorf("of %q: %d, want %d", row.files, got, row.want)
		}
	}
	raw, err := os.ReadFile("/proc/meminfo")
	var kib int64
	if _, failed := fmt.Sscanf(string(raw), "MemTotal: %d kB", &kib); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if got := limitsHere().Memory; got != kib<<10/4*3 {
		t.Errorf("of %d KiB it may have %d bytes", kib, got)
	}
}

// A fence that cannot be made is none, leaves nothing and says for each version why.
func TestAFenceThatCannotBeMadeIsNone(t *testing.T) {
	for _, row := range []struct {
		name   string
		mounts []string // controllers that are mounted; "" is version 2
		left   error    // what became of what an earlier keeper had left
		says   []string
		found  int // fences that were looked into
	}{
		{"nothing is mounted", nil, nil, []string{"no control groups of version 2", "no control groups of version 1"}, 0},
		{"version 1 without processes", []string{"memory"}, nil, []string{"no control groups of version 2", "no control groups of version 1"}, 0},
		{"version 1 without memory", []string{"pids"}, nil, []string{"no control groups of version 2", "no control groups of version 1"}, 0},
		{"version 2 takes no limit", []string{""}, nil, []string{"memory.max", "no control groups of version 1"}, 1},
		{"version 1 takes no limit", []string{"memory", "pids"}, nil, []string{"no control groups of version 2", "memory.limit_in_bytes"}, 1},
		{"no version takes a limit", []string{"", "memory", "pids"}, nil, []string{"memory.max", "memory.limit_in_bytes"}, 2},
		{"what is left stays", []string{""}, errors.New("it does not end"), []string{"it does not end"}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := t.TempDir()
			mounts, own := map[string]string{}, map[string]string{"": "/a/b", "memory": "/m", "pids": "/p"}
			for _, name := range row.mounts {
				mounts[name] = filepath.Join(at, "v"+name)
				files := map[string]string{"cgroup.controllers": "memory pids", "cgroup.subtree_control": "", "cgroup.procs": ""}
				grouped(t, filepath.Join(mounts[name], "a", "b"), files)
				grouped(t, filepath.Join(mounts[name], "a"), files)
				grouped(t, filepath.Join(mounts[name], own[name]), nil)
			}
			found := 0
			f, err := findFence(mounts, own, at, few, func(f *fence) error {
				if found++; f.none() || f.Limits != few {
					t.Errorf("looked into %+v", f)
				}
				return row.left
			})
			if !f.none() || f.Limits != (Limits{}) || found != row.found {
				t.Errorf("%+v after %d", f, found)
			}
			for _, says := range row.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
			left, _ := filepath.Glob(filepath.Join(at, "*", "*", fenceName+"*"))
			if len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
		})
	}
}

// Only where a service manager has started the keeper does it leave the group that it was put into.
func TestAKeeperMovesOnlyInAService(t *testing.T) {
	for _, service := range []string{"", "1"} {
		t.Setenv(InService, service)
		at := t.TempDir()
		for _, dir := range []string{"a", "a/b", "a/b/" + leafName} {
			grouped(t, filepath.Join(at, dir), map[string]string{"cgroup.controllers": "memory pids", "cgroup.subtree_control": "", "cgroup.procs": ""})
		}
		_, _ = findFence(map[string]string{"": at}, map[string]string{"": "/a/b"}, at, few, (*fence).leave)
		if moved := holds(t, filepath.Join(at, "a", "b", leafName))["cgroup.procs"] == "0"; moved != (service != "") {
			t.Errorf("%s=%s: it has moved: %t", InService, service, moved)
		}
	}
}

func TestAKeeperThatCannotMoveOrHandDownHasNoFence(t *testing.T) {
	for _, missing := range []string{"cgroup.procs", "cgroup.subtree_control"} {
		at := t.TempDir()
		files := map[string]string{"cgroup.controllers": "memory pids", "cgroup.subtree_control": "", "cgroup.procs": ""}
		delete(files, missing)
		grouped(t, filepath.Join(at, "a"), files)
		grouped(t, filepath.Join(at, "a", leafName), files)
		if f, err := unifiedFence(map[string]string{"": at}, map[string]string{"": "/a"}, "fence", true); err == nil || f != nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %+v, %v", missing, f, err)
		}
	}
}

// What does not begin within the limits does not run, nor does what its keeper could not come back from.
func TestNothingRunsThatDidNotBeginWithinTheLimits(t *testing.T) {
	tasks := map[string]string{"tasks": ""}
	for _, row := range []struct {
		name         string
		memory, pids map[string]string // nil = there is no such group
		back         string            // "" = a file
		program      string
		says         string
		moved        bool // the thread has gone there
	}{
		{"in version 1", tasks, tasks, "", "sleep", "", true},
		{"no way back", tasks, tasks, "/nonexistent/tasks", "sleep", "/nonexistent/tasks", false},
		{"the way back is shut", tasks, tasks, "/dev/full", "sleep", "no space left", true},
		{"no group for memory", map[string]string{}, tasks, "", "sleep", "memory/tasks", true},
		{"no group for processes", tasks, map[string]string{}, "", "sleep", "pids/tasks", true},
		{"no program", tasks, tasks, "", "/nonexistent/program", "/nonexistent/program", true},
		{"no group of version 2", nil, nil, "", "sleep", "no such file", false},
		{"a folder that is no group", nil, map[string]string{}, "", "sleep", "sleep: ", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := t.TempDir()
			f := &fence{memory: filepath.Join(at, "memory"), processes: filepath.Join(at, "memory")}
			back := row.back
			if back == "" {
				back = filepath.Join(at, "back")
				grouped(t, at, map[string]string{"back": ""})
			}
			if row.memory != nil {
				f.processes = filepath.Join(at, "pids")
				f.tasks = []string{back}
				grouped(t, f.memory, row.memory)
			}
			if row.pids != nil {
				grouped(t, f.processes, row.pids)
			}
			cmd := exec.Command(row.program, "600")
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			before := filesOpen(t)
			err := f.bear(cmd)
			if after := filesOpen(t); cmd.Process == nil && after > before {
				t.Errorf("%d files stay open", after-before)
			}
			if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
				t.Errorf("it says %v, want %q", err, row.says)
			}
			if row.back == "" && row.memory != nil && holds(t, at)["back"] != "0" {
				t.Error("the thread that started it has not come back")
			}
			if cmd.Process == nil {
				if err == nil {
					t.Error("nothing has begun")
				}
				return
			}
			if err != nil && cmd.ProcessState == nil {
				t.Error("it runs on")
			}
			if err == nil {
				if is, err := deadman.Look(cmd.Process.Pid); err != nil || !deadman.Alive(is) {
					t.Error("it does not run")
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// filesOpen says how many files this process has open.
func filesOpen(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// The number of a process that has ended may be another's by the time it is to be ended.
func TestAProcessThatIsNotWithinIsNotEnded(t *testing.T) {
	at := t.TempDir()
	f := &fence{memory: filepath.Join(at, nameOf(at)), processes: filepath.Join(at, nameOf(at))}
	grouped(t, f.processes, map[string]string{"pids.max": ""})
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	before := filesOpen(t)
	for range 10 {
		f.kill(cmd.Process.Pid)
	}
	if after := filesOpen(t); after > before {
		t.Errorf("%d files stay open", after-before)
	}
	if got := holds(t, f.processes)["pids.max"]; got != "0" {
		t.Errorf("%q processes may be started meanwhile", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil { // had it been ended, it would be by another signal
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it has ended: %v", err)
	}
}

// The keeper's own thread is in there for a moment; and a kernel may say more than numbers.
func TestTheKeeperIsNotItsOwnSurvivor(t *testing.T) {
	at := t.TempDir()
	f := &fence{memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one")}
	for _, dir := range []string{f.memory, filepath.Join(f.memory, "sandbox")} {
		grouped(t, dir, map[string]string{"cgroup.procs": fmt.Sprintf("%d\nsomething\n4711\n", os.Getpid())})
	}
	var got []int
	err := f.empty(func(pid int) {
		got = append(got, pid)
		_ = os.Remove(filepath.Join(f.memory, "cgroup.procs"))
		_ = os.Remove(filepath.Join(f.memory, "sandbox", "cgroup.procs"))
	})
	if err != nil || !slices.Equal(got, []int{4711}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Stat(f.memory); err == nil {
		t.Error("the group is left")
	}
}

// A keeper that finds no fence removes at once what it has made, with what lay below.
func TestGroupsGoWithAllBelow(t *testing.T) {
	at := t.TempDir()
	f := &fence{memory: filepath.Join(at, "memory"), processes: filepath.Join(at, "pids")}
	grouped(t, filepath.Join(f.memory, "sandbox", "inner"), nil)
	grouped(t, filepath.Join(f.processes, "sandbox"), nil)
	if err := f.remove(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(at); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if err := f.remove(); err != nil {
		t.Errorf("what is gone already: %v", err)
	}
}

// What does not go is waited for, a while; then it is said what is left.
func TestAGroupThatDoesNotEmptyIsGivenUp(t *testing.T) {
	at := t.TempDir()
	grouped(t, filepath.Join(at, "memory", "stays"), map[string]string{"file": ""})
	grouped(t, filepath.Join(at, "pids"), nil)
	synctest.Test(t, func(t *testing.T) {
		f := &fence{memory: filepath.Join(at, "memory"), processes: filepath.Join(at, "pids")}
		began, cmd := time.Now(), exec.Command("true")
		err := f.start(cmd)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(at, "memory")) || cmd.Process != nil {
			t.Errorf("within what is left of another something was started: %v", err)
		}
		if took := time.Since(began); took < survivorsMax || took > survivorsMax+time.Second {
			t.Errorf("it took %s", took)
		}
		if _, err := os.Stat(f.processes); err == nil {
			t.Error("an empty one is left")
		}
	})
}

// A fence begins with its limits, or nothing begins.
func TestNothingBeginsWithoutTheLimits(t *testing.T) {
	at := t.TempDir()
	f := &fence{Limits: few, memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one")}
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := f.start(cmd); err == nil || !strings.Contains(err.Error(), "memory.max") || cmd.Process != nil {
		t.Errorf("%v, %v", err, cmd.Process)
	}
}

// What an earlier keeper has left of a version on trial ends before another daemon is started; a version that was kept runs on, with what it
// has started.
func TestWhatAnEarlierKeeperHasLeftEndsUnlessItWasKept(t *testing.T) {
	for _, row := range []struct {
		step  Step // "" = there is no record
		spoil bool // nobody can read it
		ends  bool
	}{
		{step: ""}, {step: Armed}, {step: Handed, ends: true}, {step: ReadyOnce, ends: true}, {step: Ready, ends: true}, {step: Asked, ends: true},
		{step: Confirmed}, {step: Back, ends: true}, {step: Confirmed, spoil: true, ends: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, row.step)
			if row.step != "" {
				if err := s.r.write(disk.Ops{}, s.home); err != nil {
					t.Fatal(err)
				}
			}
			if row.spoil {
				disktest.Put(t, RecordPath(s.home), "{", 0o600)
			}
			at := t.TempDir()
			f := &fence{memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one"), back: []string{filepath.Join(at, "cgroup.procs")}}
			grouped(t, f.memory, map[string]string{"cgroup.procs": "1073741824\n", "pids.max": ""}) // no process has such a number
			grouped(t, at, map[string]string{"cgroup.procs": ""})
			did := make(chan map[bool]bool, 1)
			time.AfterFunc(5*time.Millisecond, func() { // a group of files can be removed once they are gone
				did <- map[bool]bool{true: holds(t, f.memory)["pids.max"] == "0", false: holds(t, at)["cgroup.procs"] == "1073741824"}
				_ = errors.Join(os.Remove(filepath.Join(f.memory, "cgroup.procs")), os.Remove(filepath.Join(f.memory, "pids.max")))
			})
			if err := settle(f, s.home); err != nil {
				t.Error(err)
			}
			if got := <-did; !got[row.ends] || got[!row.ends] {
				t.Errorf("at %q, spoiled %t: it ends %t, it is left %t", row.step, row.spoil, got[true], got[false])
			}
		})
	}
}
