package command_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/command"
)

// person makes a home with a repository and a tool installed beside it.
func person(t *testing.T) (task agent.Task, tool string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "people", "ann")
	task = agent.Task{Home: home, Top: filepath.Join(home, "repo"), Workdir: "sub", Path: filepath.Join(root, "opt/tool/bin") + ":/usr/bin:/bin"}
	for path, text := range map[string]string{
		filepath.Join(root, "opt/tool/bin/tool"): "#!/bin/sh\n",
		filepath.Join(task.Top, "sub/fix.sh"):    "#!/bin/sh\n",
		filepath.Join(task.Top, "top.sh"):        "#!/bin/sh\n",
	} {
		disktest.Put(t, path, text, 0o755)
	}
	return task, filepath.Join(root, "opt/tool")
}

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	task, _ := person(t)
	task.Argv = []string{"tool", "arg"}
	agenttest.Run(t, command.New(), task)
}

func TestACommandIsWhatItIsInThePersonsShell(t *testing.T) {
	task, tool := person(t)
	for _, row := range []struct {
		argv, want []string
		shown      string
	}{
		{[]string{"tool", "--flag", "a b"}, []string{tool + "/bin/tool", "--flag", "a b"}, tool},
		{[]string{tool + "/bin/tool"}, []string{tool + "/bin/tool"}, tool},
		{[]string{"sh", "-c", "x"}, []string{"/usr/bin/sh", "-c", "x"}, ""},
		{[]string{"./fix.sh"}, []string{"/workspace/sub/fix.sh"}, ""},
		{[]string{"../top.sh"}, []string{"/workspace/top.sh"}, ""},
		{[]string{task.Top + "/top.sh"}, []string{"/workspace/top.sh"}, ""},
	} {
		task.Argv = row.argv
		p, err := command.New().Program(task)
		if err != nil {
			t.Errorf("%q: %v", row.argv, err)
			continue
		}
		shown := ""
		for _, b := range p.Binds {
			shown += b.Target
		}
		if !reflect.DeepEqual(p.Argv, row.want) || shown != row.shown || len(p.Env) != 0 || len(p.Dirs) > 0 && p.Dirs[0] != tool+"/bin" {
			t.Errorf("%q: %+v", row.argv, p)
		}
		if want := filepath.Base(row.argv[0]); p.Name != want {
			t.Errorf("%q is called %q", row.argv, p.Name)
		}
	}
}

func TestACommandOfTheSystemIsTheImages(t *testing.T) {
	task, _ := person(t)
	task.Image, task.Path, task.Argv = filepath.Join(t.TempDir(), "0123/root"), "/usr/bin", []string{"tool", "x"}
	if err := os.MkdirAll(filepath.Join(task.Image, "usr/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, filepath.Join(task.Image, "usr/bin/tool"), "", 0o755)
	if p, err := command.New().Program(task); err != nil || p.Argv[0] != "/usr/bin/tool" || len(p.Binds) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
	disktest.Put(t, filepath.Join(task.Image, "usr/bin/script"), "#!/usr/bin/env tool\n", 0o755)
	for name, says := range map[string]string{"env": `the command "env"`, "script": `what the command "script" needs`} {
		task.Argv = []string{name}
		_, err := command.New().Program(task)
		if p := problem.Of(err); p.Kind != problem.NotFound || !strings.Contains(p.Text, says+" is not in the image 0123") || !strings.Contains(p.Text, "image/Dockerfile") {
			t.Errorf("%+v", p)
		}
	}
}

func TestACommandThatIsNotThereIsNamedAndQuoted(t *testing.T) {
	task, _ := person(t)
	for _, name := range []string{"no-such-tool", "./gone.sh", "/no/such", "evil\x1b[2J\n'; rm -rf"} {
		task.Argv = []string{name}
		_, err := command.New().Program(task)
		p := problem.Of(err)
		if p.Kind != problem.NotFound || p.Next == "" || strings.ContainsAny(p.Text, "\x1b\n") || name == "no-such-tool" && strings.Count(p.Text, name) != 1 {
			t.Errorf("%q: %+v", name, p)
		}
	}
	task.Argv = []string{"sub"}
	task.Workdir = ""
	task.Argv[0] = "./sub"
	if _, err := command.New().Program(task); problem.KindOf(err) != problem.NotFound {
		t.Errorf("a folder is no command: %v", err)
	}
}
