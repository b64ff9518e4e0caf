package runner

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/port/agent"
)

// play runs steps in a fresh folder and returns the status, what was said and what is there.
func play(t *testing.T, steps ...agent.Step) (int, string) {
	t.Helper()
	t.Chdir(t.TempDir())
	text, err := json.Marshal(agent.Script{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	return replay(strings.NewReader(string(text)), &out), out.String()
}

func TestReplayEditsRunsAndReacts(t *testing.T) {
	status, out := play(t,
		agent.Step{When: "passed", Say: "never: nothing ran yet"},
		agent.Step{Say: "looking"},
		agent.Step{Write: &agent.Write{Path: "a/b/run", Content: "#!/bin/sh\necho 1 - 2\nexit 1\n", Mode: "0755"}},
		agent.Step{Run: "a/b/run", Expect: "fail"},
		agent.Step{When: "passed", Delete: "a"},
		agent.Step{When: "failed", Replace: &agent.Replace{Path: "a/b/run", Old: "exit 1", New: "exit 0"}},
		agent.Step{When: "failed", Say: "mended"},
		agent.Step{Run: "a/b/run", Expect: "pass"},
		agent.Step{When: "failed", Say: "never: it passed"},
		agent.Step{Rename: &agent.Rename{From: "a/b/run", To: "c/d/moved"}},
		agent.Step{Delete: "a"},
	)
	want := "looking\nwrite a/b/run\n$ a/b/run\n1 - 2\nedit a/b/run\nmended\n$ a/b/run\n1 - 2\nrename a/b/run to c/d/moved\ndelete a\n"
	if status != 0 || out != want {
		t.Errorf("status %d, %q, want %q", status, out, want)
	}
	info, err := os.Stat("c/d/moved")
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat("a"); !os.IsNotExist(err) {
		t.Error("a is still there")
	}
}

func TestReplayGivesUpWhenItIsSurprised(t *testing.T) {
	for name, step := range map[string]agent.Step{
		"expected to pass": {Run: "exit 3", Expect: "pass"},
		"expected to fail": {Run: "true", Expect: "fail"},
		"0 times":          {Replace: &agent.Replace{Path: "f", Old: "zz", New: "y"}},
		"2 times":          {Replace: &agent.Replace{Path: "f", Old: "x", New: "y"}},
		"no such file":     {Delete: "gone"},
		"no such file or":  {Rename: &agent.Rename{From: "gone", To: "there"}},
		"not a directory":  {Write: &agent.Write{Path: "f/g", Content: "x"}},
	} {
		status, out := play(t, agent.Step{Write: &agent.Write{Path: "f", Content: "x x"}}, step, agent.Step{Say: "went on"})
		if status != 1 || !strings.Contains(out, name) || !strings.Contains(out, "step 2") || strings.Contains(out, "went on") {
			t.Errorf("%s: status %d, %q", name, status, out)
		}
	}
	if status := replay(strings.NewReader(`{"steps":[{"sayy":"x"}]}`), &strings.Builder{}); status != 2 {
		t.Errorf("status %d", status)
	}
}

func TestTheRunnerIsNoCommandForPeople(t *testing.T) {
	for _, args := range [][]string{nil, {"init", "x"}, {"unknown"}, {"init"}} {
		if status := Main(args); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
}

func TestAProgramIsFoundInItsOwnPathOnly(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("PATH", dir)
	for name, mode := range map[string]os.FileMode{"tool": 0o755, "text": 0o644} {
		disktest.Put(t, name, "", mode)
	}
	for _, row := range []struct {
		name, path, dir string
		found           bool
	}{
		{"tool", dir, "/", true},
		{"tool", "/usr/bin", "/", false},   // the runner's own PATH does not count
		{"tool", ".:relative", dir, false}, // nor what lies in the workspace
		{"./tool", "", dir, true},
		{"./tool", dir, "/", false},
		{"text", dir, "/", false},
		{dir, dir, "/", false},
		{"", dir, dir, false},
	} {
		path, err := find(row.name, []string{"X=1", "PATH=" + row.path}, row.dir)
		if (err == nil) != row.found {
			t.Errorf("%+v: %q, %v", row, path, err)
		}
	}
}
