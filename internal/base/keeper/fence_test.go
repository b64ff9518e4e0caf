package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/cgroup"
	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk/disktest"
)

// few are limits that a small machine can reach.
var few = Limits{Memory: 384 << 20, Processes: 200}

// eats takes more memory than few allow, and stops there: no machine is eaten where nothing ends it.
func eats(home string) {
	var eaten [][]byte
	for range 64 {
		part := make([]byte, 16<<20)
		for i := 0; i < len(part); i += 1 << 10 {
			part[i] = 1
		}
		eaten = append(eaten, part)
	}
	note(home, "it has eaten %d", len(eaten))
	select {}
}

// forks starts more processes than few allow, in a session of their own. Each starts two, and stays.
func forks(home string) {
	cmd := exec.Command("sh", "-c", `b() { if [ $1 -gt 0 ]; then b $(($1-1)) & b $(($1-1)) & fi; sleep 600; }; b 8`, "of "+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		note(home, "%v", err)
	}
}

// limited skips a test where no control group can be made, and writes the limits of a home.
func limited(t *testing.T, home string) {
	t.Helper()
	if f, err := findFence(cgroup.Mounts(), cgroup.Own(), t.TempDir(), few, (*fence).end); f.none() {
		t.Skipf("NO CONTROL GROUP CAN BE MADE HERE, so nothing limits a version on trial: %v", err)
	}
	raw, err := json.Marshal(few)
	if err == nil {
		err = os.WriteFile(plays(home, "limits"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// groupsOf returns the control groups of a home's version on trial, wherever they are.
func groupsOf(home string) (dirs []string) {
	for _, at := range slices.Compact(slices.Sorted(maps.Values(cgroup.Mounts()))) {
		_ = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && e.Name() == nameOf(home) {
				dirs = append(dirs, path)
			}
			return nil // what others remove meanwhile is no matter
		})
	}
	return dirs
}

// A version that eats the machine ends at its limits, with all that it has started, and the old one is back.
func TestAVersionThatEatsTheMachineGoesBack(t *testing.T) {
	for _, row := range []struct{ name, does, says string }{
		{"memory", "eats", "for memory, of which a version on trial may use 384 MiB"},
		{"processes", "forks", "it wanted more than 200 processes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			home, r := armedHome(t)
			limited(t, home)
			disktest.Put(t, plays(home, "bad"), row.does, 0o600)
			keeper := keeps(t, home, InService+"=1")
			await(t, "end of the host change", over(home))
			wentBackWhole(t, home, r)
			if got := noted(t, home); !strings.HasSuffix(got, lines("revert from old at back with 0 survivors", "old at back")) || strings.Contains(got, "eaten") {
				t.Errorf("the daemons:\n%s", got)
			}
			raw, err := os.ReadFile(plays(home, "log"))
			if err != nil || !strings.Contains(string(raw), "host change chg-1: back: ") || !strings.Contains(string(raw), row.says) {
				t.Errorf("it is not said, %v: %q", err, row.says)
			}
			if n := childrenOf(keeper); n != 1 {
				t.Errorf("the keeper has %d children", n)
			}
			if left := speakingOf(home); len(left) != 2 {
				t.Errorf("beside keeper and daemon something runs: %v", left)
			}
			if left := groupsOf(home); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// What a version on trial has left behind when its keeper was killed is nobody's child that the next one could find.
func TestTheNextKeeperEndsWhatAVersionOnTrialHasLeft(t *testing.T) {
	home, r := armedHome(t)
	limited(t, home)
	err := errors.Join(os.WriteFile(plays(home, "bad"), []byte("orphans"), 0o600), os.WriteFile(plays(home, "strike"), []byte(ReadyOnce), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	killed := keeps(t, home, InService+"=1")
	await(t, "blow", func() bool { _, err := os.Stat(plays(home, "strike")); return err != nil })
	await(t, "end of the keeper", func() bool { return !Kept(home) })
	orphans := alive(home)
	if len(orphans) != 1 || len(groupsOf(home)) == 0 {
		t.Fatalf("keeper %d has left %v in %v", killed.Process.Pid, orphans, groupsOf(home))
	}
	keeps(t, home, InService+"=1")
	await(t, "end of the orphan", func() bool { return !slices.Contains(alive(home), orphans[0]) })
	await(t, "end of the host change", over(home))
	wentBackWhole(t, home, r)
	if left := groupsOf(home); len(left) > 0 || len(alive(home)) > 0 {
		t.Errorf("left over: %v, %v", left, alive(home))
	}
}

// What is kept has no limits any more, and stays where its sandboxes have their groups. These go once it has ended.
func TestAVersionThatIsKeptHasNoLimits(t *testing.T) {
	home, _ := armedHome(t)
	limited(t, home)
	disktest.Put(t, plays(home, "code"), plain, 0o600)
	cmd := keeps(t, home, InService+"=1")
	await(t, "end of the host change", over(home))
	lifted := func() bool {
		dirs := groupsOf(home)
		for _, dir := range dirs {
			for _, limit := range []string{"pids.max", "memory.max", "memory.limit_in_bytes"} {
				if n, is := cgroup.Number(dir, limit, ""); is && n <= few.Memory {
					return false
				}
			}
		}
		return len(dirs) > 0
	}
	await(t, "end of the limits", lifted)

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the keeper", func() bool { return !Kept(home) })
	if left := groupsOf(home); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// sleeps is a process in a fence, and below it.
func sleeps(t *testing.T, f *fence, below bool) (*exec.Cmd, deadman.Process) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if err := f.bear(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for _, top := range slices.Compact([]string{f.memory, f.processes}) {
		dir := filepath.Join(top, "sandbox")
		err := made(dir)
		if below {
			err = errors.Join(err, put(dir, "cgroup.procs", fmt.Sprint(cmd.Process.Pid)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	is, err := deadman.Look(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, is
}

// TestAFenceEndsOrLeavesWhatIsInIt has both versions of control groups, as far as the machine has them.
func TestAFenceEndsOrLeavesWhatIsInIt(t *testing.T) {
	mounts, own := cgroup.Mounts(), cgroup.Own()
	for _, version := range []string{"1", "2"} {
		for _, below := range []bool{false, true} {
			for _, ends := range []bool{false, true} {
				t.Run(fmt.Sprintf("version %s, below %t, ends %t", version, below, ends), func(t *testing.T) {
					name := nameOf(t.TempDir())
					f, err := oldFence(mounts, own, name)
					if version == "2" {
						at, is := mounts[""]
						mine := filepath.Join(at, own[""])
						f = &fence{memory: filepath.Join(mine, name), processes: filepath.Join(mine, name), back: []string{filepath.Join(mine, "cgroup.procs")}}
						if err = nil; !is {
							err = errors.New("it is not mounted")
						}
					}
					if err == nil {
						err = errors.Join(made(f.memory), made(f.processes))
					}
					if err != nil {
						t.Skipf("NO CONTROL GROUP OF VERSION %s CAN BE MADE HERE: %v", version, err)
					}
					defer func() { _ = f.end() }()
					cmd, is := sleeps(t, f, below)
					if !strings.Contains(groupsIn(t, is.PID), name) || strings.Contains(groupsIn(t, os.Getpid()), name) {
						t.Errorf("it is in\n%s\nand this process in\n%s", groupsIn(t, is.PID), groupsIn(t, os.Getpid()))
					}
					do := f.leave
					if ends {
						do = f.end
					}
					if err := do(); err != nil {
						t.Fatal(err)
					}
					if ends {
						_ = cmd.Wait()
					}
					if deadman.Alive(is) == ends {
						t.Errorf("it is alive: %t", !ends)
					}
					for _, dir := range []string{f.memory, f.processes} {
						if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("%s is left: %v", dir, err)
						}
					}
				})
			}
		}
	}
}

// A trial after one that was kept begins in groups of its own: who was kept has left something in them, and what was counted there.
func TestAFenceBeginsEmpty(t *testing.T) {
	f, err := findFence(cgroup.Mounts(), cgroup.Own(), t.TempDir(), few, (*fence).end)
	if f.none() {
		t.Skipf("NO CONTROL GROUP CAN BE MADE HERE: %v", err)
	}
	defer func() { _ = f.end() }()
	if err := f.make(); err != nil {
		t.Fatal(err)
	}
	_, service := sleeps(t, f, true)
	next := exec.Command("sleep", "600")
	next.SysProcAttr = &syscall.SysProcAttr{}
	if err := f.start(next); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = next.Process.Kill(); _ = next.Wait() }()
	name := filepath.Base(f.memory)
	if !deadman.Alive(service) || strings.Contains(groupsIn(t, service.PID), name) || !strings.Contains(groupsIn(t, next.Process.Pid), name) {
		t.Errorf("the service is in\n%s\nand the next in\n%s", groupsIn(t, service.PID), groupsIn(t, next.Process.Pid))
	}
	for file, want := range map[string]int64{filepath.Join(f.processes, "pids.max"): few.Processes, filepath.Join(f.memory, "memory.limit_in_bytes"): few.Memory, filepath.Join(f.memory, "memory.max"): few.Memory} {
		if n, is := cgroup.Number(filepath.Dir(file), filepath.Base(file), ""); is && n != want {
			t.Errorf("%s is %d", file, n)
		}
	}
}

func groupsIn(t *testing.T, pid int) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// Where a fence of version 2 lies is tried on files: which groups may hand down what is no matter here.
func TestAFenceOfVersion2LiesWhereControllersAreHandedDown(t *testing.T) {
	for _, row := range []struct {
		name, own    string
		service      bool
		has          string // controllers of the group that the fence would lie in
		parent, mine string // where it lies, and where the keeper is then
	}{
		{"beside a terminal's", "/a/b", false, "cpu memory pids", "/a", "/a/b"},
		{"in the service's, and so is the keeper", "/a/b", true, "memory pids", "/a/b", "/a/b/" + leafName},
		{"beside a keeper that is there already", "/a/b/" + leafName, true, "memory pids", "/a/b", "/a/b/" + leafName},
		{"at the top", "/", false, "memory pids", "/", "/"},
		{"without memory", "/a/b", false, "cpu pids", "", ""},
		{"without processes", "/a/b", true, "memory", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := t.TempDir()
			for _, dir := range []string{"/", "/a", "/a/b", "/a/b/" + leafName} {
				for name, text := range map[string]string{"cgroup.controllers": row.has, "cgroup.subtree_control": "", "cgroup.procs": ""} {
					err := errors.Join(os.MkdirAll(filepath.Join(at, dir), 0o700), os.WriteFile(filepath.Join(at, dir, name), []byte(text), 0o600))
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			f, err := unifiedFence(map[string]string{"": at}, map[string]string{"": row.own}, "fence", row.service)
			if row.parent == "" {
				if err == nil {
					t.Error("there is one")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.memory != filepath.Join(at, row.parent, "fence") || !f.unified() || f.back[0] != filepath.Join(at, row.mine, "cgroup.procs") {
				t.Errorf("it lies at %s, the keeper at %s", f.memory, f.back)
			}
			handed, _ := os.ReadFile(filepath.Join(at, row.parent, "cgroup.subtree_control"))
			moved, _ := os.ReadFile(filepath.Join(at, row.mine, "cgroup.procs"))
			if string(handed) != "+memory +pids" || (string(moved) == "0") != (row.mine != row.own && row.own != "/") {
				t.Errorf("handed down: %q, moved: %q", handed, moved)
			}
		})
	}
}

func TestNoFenceLimitsNothing(t *testing.T) {
	f := &fence{}
	if err := errors.Join(f.lift(), f.end(), f.leave()); err != nil || f.reached() != "" {
		t.Errorf("%q, %v", f.reached(), err)
	}
	if l := limitsHere(); l.Memory < 64<<20 || l.Processes < 100 || l.Processes > 4096 {
		t.Errorf("the limits here are %+v", l)
	}
}

// The way back ends the version on trial, and its groups with it, before the limits are lifted.
func TestAGroupThatIsGoneHasNoLimitsToLift(t *testing.T) {
	at := t.TempDir()
	for _, f := range []*fence{
		{memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one")},
		{memory: filepath.Join(at, "memory"), processes: filepath.Join(at, "pids")},
	} {
		if err := f.lift(); err != nil {
			t.Errorf("of version 2: %t: %v", f.unified(), err)
		}
	}
	if err := (&fence{memory: at, processes: at}).lift(); err == nil {
		t.Error("a group that is there and takes no limit is a fault")
	}
}

// A sandbox below has limits of its own. That one reaches them is no fault of the daemon.
func TestALimitThatASandboxReachesIsNotTheDaemons(t *testing.T) {
	f, err := findFence(cgroup.Mounts(), cgroup.Own(), t.TempDir(), few, (*fence).end)
	if f.none() || f.unified() {
		t.Skipf("NO CONTROL GROUP OF VERSION 1 CAN BE MADE HERE, and with version 2 no sandbox is below: %v", err)
	}
	defer func() { _ = f.end() }()
	memory, pids := filepath.Join(f.memory, "sandbox"), filepath.Join(f.processes, "sandbox")
	err = errors.Join(f.make(), made(memory), made(pids), put(pids, "pids.max", "8"), put(memory, "memory.limit_in_bytes", "33554432"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ dir, file, key, does string }{
		{pids, "pids.events", "max", `i=0; while [ $i -lt 20 ]; do sleep 600 & i=$((i+1)); done`},
		{memory, "memory.oom_control", "oom_kill", `x=0123456789abcdef; while [ ${#x} -lt 200000000 ]; do x=$x$x; done`},
	} {
		cmd := exec.Command("sh", "-c", `echo 0 >"$1" && echo 0 >"$2" && `+row.does, "sh", filepath.Join(memory, "cgroup.procs"), filepath.Join(pids, "cgroup.procs"))
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if err := f.bear(cmd); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // how it ends is no matter
		if n, _ := cgroup.Number(row.dir, row.file, row.key); n == 0 {
			t.Errorf("it has not reached the limit of %s", row.dir)
		}
		if limit := f.reached(); limit != "" {
			t.Errorf("the daemon is told: %s", limit)
		}
		if row.dir == pids { // room for the next
			err = put(pids, "pids.max", "max")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
