package bwrap

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/sandbox"
)

// grows makes a folder behave as the kernel's: a group that is made has the files of its
// controllers, and one that is removed takes them with it.
func grows(t *testing.T, files ...string) disk.Ops {
	t.Helper()
	return disk.Ops{Around: func(op string, do func() error) error {
		switch op {
		case "cgroup:make":
			if err := do(); err != nil {
				return err
			}
			for _, pattern := range files {
				dirs, err := filepath.Glob(filepath.Dir(pattern))
				if err != nil {
					return err
				}
				for _, dir := range dirs {
					f, err := os.OpenFile(filepath.Join(dir, filepath.Base(pattern)), os.O_CREATE|os.O_WRONLY, 0o644)
					if err != nil {
						return err
					}
					f.Close()
				}
			}
			return nil
		case "cgroup:remove":
			for _, pattern := range files {
				found, err := filepath.Glob(pattern)
				if err != nil {
					return err
				}
				for _, f := range found {
					if err := os.Remove(f); err != nil {
						return err
					}
				}
			}
		}
		return do()
	}}
}

func TestLimitsAreWrittenToControlGroupsOfEitherVersionAndReadFromThem(t *testing.T) {
	limits := sandbox.Limits{MemoryBytes: 64 << 20, ProcessesMax: 40}.OrDefault()
	type wanted map[string]string // below the root, file → text
	for _, row := range []struct {
		name   string
		layout func(root string) layout
		files  []string
		want   wanted
		broken wanted // what the kernel writes then
	}{
		{"version 2", func(root string) layout {
			l := layout{unified: filepath.Join(root, "home")}
			l.kind.memory, l.kind.pids = cgroup2, cgroup2
			return l
		}, []string{"home/*/memory.max", "home/*/memory.swap.max", "home/*/pids.max", "home/*/memory.events", "home/*/memory.peak", "home/*/pids.events"},
			wanted{"home/*/memory.max": "67108864", "home/*/memory.swap.max": "0", "home/*/pids.max": "64"},
			wanted{"home/*/memory.events": "low 0\noom 3\noom_kill 2\n", "home/*/memory.peak": "67100000\n", "home/*/pids.events": "max 7\n"}},
		{"version 2 without a file for swap", func(root string) layout {
			l := layout{unified: filepath.Join(root, "home")}
			l.kind.memory, l.kind.pids = cgroup2, cgroup2
			return l
		}, []string{"home/*/memory.max", "home/*/pids.max", "home/*/memory.events", "home/*/memory.peak", "home/*/pids.events"},
			wanted{"home/*/memory.max": "67108864", "home/*/pids.max": "64"},
			wanted{"home/*/memory.events": "oom_kill 1\n", "home/*/memory.peak": "67100000\n", "home/*/pids.events": "max 7\n"}},
		{"version 1", func(root string) layout {
			l := layout{memory: filepath.Join(root, "memory"), pids: filepath.Join(root, "pids")}
			l.kind.memory, l.kind.pids = cgroup1, cgroup1
			return l
		}, []string{"*/*/tasks", "memory/*/memory.limit_in_bytes", "memory/*/memory.memsw.limit_in_bytes", "pids/*/pids.max",
			"memory/*/memory.oom_control", "memory/*/memory.max_usage_in_bytes", "pids/*/pids.events"},
			wanted{"memory/*/memory.limit_in_bytes": "67108864", "memory/*/memory.memsw.limit_in_bytes": "67108864", "pids/*/pids.max": "64"},
			wanted{"memory/*/memory.oom_control": "under_oom 0\noom_kill 1\n", "memory/*/memory.max_usage_in_bytes": "67100000\n", "pids/*/pids.events": "max 7\n"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			root := t.TempDir()
			l := row.layout(root)
			for _, dir := range append(l.folders(), filepath.Join(root, "other")) {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var files []string
			for _, f := range row.files {
				files = append(files, filepath.Join(root, f))
			}
			g, err := l.make(grows(t, files...), "one", limits)
			if err != nil {
				t.Fatal(err)
			}
			g.close()
			one := func(pattern string) string {
				found, err := filepath.Glob(filepath.Join(root, pattern))
				if err != nil || len(found) != 1 {
					t.Fatalf("%s: %q, %v", pattern, found, err)
				}
				return found[0]
			}
			for pattern, want := range row.want {
				if raw, err := os.ReadFile(one(pattern)); err != nil || string(raw) != want {
					t.Errorf("%s holds %q, %v", pattern, raw, err)
				}
			}
			if _, yes := g.outOfMemory(); yes || g.forksRefused() != 0 {
				t.Error("a limit was broken before anything ran")
			}
			for pattern, text := range row.broken {
				disktest.Put(t, one(pattern), text, 0o644)
			}
			if peak, yes := g.outOfMemory(); !yes || peak != 67100000 {
				t.Errorf("memory: %d, %v", peak, yes)
			}
			if n := g.forksRefused(); n != 7 {
				t.Errorf("%d forks were refused", n)
			}
			if err := g.remove(); err != nil {
				t.Fatal(err)
			}
			for _, dir := range l.folders() {
				if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is left: %v", dir, err)
				}
			}
		})
	}
}

// Two sandboxes that begin at once, where none was: one makes the home's folder, and the other is in it before anything is handed down.
func TestAGroupThatIsMadeBeforeAnythingIsHandedDownIsLimitedAllTheSame(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	control := filepath.Join(home, "cgroup.subtree_control")
	disktest.Put(t, control, "", 0o644)
	l := layout{unified: home}
	l.kind.memory, l.kind.pids = cgroup2, cgroup2
	ops := disk.Ops{Around: func(op string, do func() error) error {
		err := do()
		if on, _ := os.ReadFile(control); op != "cgroup:write" || string(on) != "+memory +pids" {
			return err
		}
		groups, _ := filepath.Glob(filepath.Join(home, "*", ""))
		for _, dir := range groups { // as the kernel does to groups that are there
			for _, file := range []string{"memory.max", "pids.max"} {
				if f, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
					f.Close()
				}
			}
		}
		return err
	}}
	g, err := l.make(ops, "one", sandbox.Limits{MemoryBytes: 64 << 20, ProcessesMax: 40}.OrDefault())
	if err != nil {
		t.Fatal(err)
	}
	g.close()
	if is, err := os.ReadFile(filepath.Join(g.unified, "memory.max")); err != nil || string(is) != "67108864" {
		t.Errorf("it is limited to %q, %v", is, err)
	}
}

// TestOnlyWhoRanIsLookedAt holds that who used no processor is not looked at, and who may have used one is.
func TestOnlyWhoRanIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	g := groups{unified: dir}
	count := func(text string) {
		disktest.Put(t, filepath.Join(dir, "cpu.stat"), text, 0o644)
	}
	var used time.Duration
	looks := func(want bool) {
		t.Helper()
		var ran bool
		if used, ran = g.ran(used); ran != want {
			t.Errorf("after %v it is looked at: %v", used, ran)
		}
	}
	count("usage_usec 700\nuser_usec 500\n")
	looks(true)
	looks(false)
	count("usage_usec 701\nuser_usec 500\n")
	looks(true)
	looks(false)
	count("")
	looks(true)
	looks(true)
	g.unified = ""
	looks(true)
	looks(true)
}
