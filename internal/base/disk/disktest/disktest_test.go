package disktest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// replace is the habit that the loop must be able to prove: a new file beside the old one, then one rename.
func replace(ops disk.Ops, path, text string) error {
	if err := ops.Do("page:write", func() error { return os.WriteFile(path+".new", []byte(text), 0o600) }); err != nil {
		return err
	}
	return ops.Do("page:commit", func() error { return os.Rename(path+".new", path) })
}

func TestEverywhereFindsEachOperationBeforeAndAfter(t *testing.T) {
	states := map[string]int{}
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		path := filepath.Join(t.TempDir(), "page")
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		crashed, err := disktest.Run(func() error { return replace(c.Ops(), path, "new") })
		if err != nil || crashed != c.Crashed() {
			t.Fatalf("crashed = %v, err = %v", crashed, err)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(text) != "old" && string(text) != "new" {
			t.Fatalf("page holds %q, %v: neither old nor new", text, err)
		}
		states[string(text)]++
	})
	if want := []string{"page:write", "page:commit"}; !slices.Equal(seen, want) {
		t.Errorf("operations %q, want %q", seen, want)
	}
	if states["old"] != 3 || states["new"] != 2 {
		t.Errorf("ends %v; want old after three crashes, new after the last one and without one", states)
	}
}

func TestNothingIsDoneOncePowerIsGone(t *testing.T) {
	c := &disktest.Crash{At: 0}
	late := false
	crashed, _ := disktest.Run(func() error {
		defer func() { // an undo that a real crash would not have run either
			_ = c.Ops().Do("undo:write", func() error { late = true; return nil })
		}()
		return c.Ops().Do("page:write", func() error { return nil })
	})
	if !crashed || late {
		t.Errorf("crashed = %v, an operation was done afterwards = %v", crashed, late)
	}
}

func TestRunLeavesOrdinaryFailuresAlone(t *testing.T) {
	want := errors.New("no")
	if crashed, err := disktest.Run(func() error { return want }); crashed || err != want {
		t.Errorf("crashed = %v, err = %v", crashed, err)
	}
	defer func() {
		if v := recover(); v != "bug" {
			t.Errorf("recovered %v: a real panic must go on", v)
		}
	}()
	_, _ = disktest.Run(func() error { panic("bug") })
}

// TestHelperProcess is the process that the test below kills.
func TestHelperProcess(t *testing.T) {
	dir := os.Getenv("DISKTEST_DIR")
	if dir == "" {
		t.Skip("only as a child of TestAProcessDiesWhereItIsTold")
	}
	ops, err := disktest.FromEnv()
	if err != nil {
		fmt.Println(err)
		os.Exit(7)
	}
	for i, op := range []string{"file:write", "file:write", "file:write", "file:claim+write"} {
		if err := ops.Do(op, func() error {
			return os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600)
		}); err != nil {
			os.Exit(8)
		}
	}
	os.Exit(0)
}

func TestAProcessDiesWhereItIsTold(t *testing.T) {
	for _, c := range []struct {
		at    string
		files int
		exit  int // -1: killed
	}{
		{"0:before", 0, -1},
		{"0:after", 1, -1},
		{"file:write:after", 1, -1},
		{"file:write#3:before", 2, -1},
		{"file:write#4:before", 3, -1},
		{"file:claim:after", 4, -1},
		{"file:claim+write:before", 3, -1},
		{"file:claim#2:before", 4, 0},
		{"9:before", 4, 0},
		{"other:write:before", 4, 0},
		{"file:write", 0, 7},
		{"file:write#none:after", 0, 7},
	} {
		t.Run(c.at, func(t *testing.T) {
			dir, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			run := func() int {
				cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess$")
				cmd.Env = append(os.Environ(), "DISKTEST_DIR="+dir, disktest.KillAt+"="+c.at, disktest.KillLog+"="+log)
				_ = cmd.Run()
				if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() && s.Signal() == syscall.SIGKILL {
					return -1
				}
				return cmd.ProcessState.ExitCode()
			}
			if got := run(); got != c.exit {
				t.Fatalf("ended with %d, want %d", got, c.exit)
			}
			if files, _ := os.ReadDir(dir); len(files) != c.files {
				t.Errorf("%d files, want %d", len(files), c.files)
			}
			if c.exit != -1 {
				return
			}
			if raw, _ := os.ReadFile(log); !strings.Contains(string(raw), "killed ") {
				t.Errorf("log does not say where it died:\n%s", raw)
			}
			if got := run(); got != 0 {
				t.Errorf("the process after it ended with %d: only one may die", got)
			}
		})
	}
}

// A loop that looks for a commit finds it whoever else was written in it.
func TestAnOperationIsFoundByEachOfItsNames(t *testing.T) {
	ops := []string{"file:write", "db:add+claim", "db:claim"}
	for name, want := range map[string]int{"db:claim": 1, "db:add": 1, "db:add+claim": 1, "file:write": 0, "db:write": -1, "db:cla": -1} {
		if got := disktest.Index(ops, name); got != want {
			t.Errorf("%s is operation %d of %q, want %d", name, got, ops, want)
		}
	}
}
