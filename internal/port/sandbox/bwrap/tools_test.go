package bwrap_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/command"
	"sallyport/internal/port/agent/replay"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
)

// workbench is a person with a repository of files, and a driver.
type workbench struct {
	task   agent.Task
	tree   sandbox.Tree
	driver *bwrap.Driver
	dir    string
}

func newWorkbench(t *testing.T, files map[string]string) workbench {
	t.Helper()
	needBwrap(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	w := workbench{
		task:   agent.Task{Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Top: filepath.Join(dir, "repo")},
		tree:   sandbox.Tree{Dir: filepath.Join(dir, "copy")},
		driver: bwrap.New(bwrap.Config{Self: self(t), Root: filepath.Join(dir, "state")}), dir: dir,
	}
	for _, top := range []string{w.task.Top, w.tree.Dir} {
		if err := os.Mkdir(top, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			disktest.Put(t, filepath.Join(top, name), text, 0o644)
		}
	}
	who := owner()
	if err := filepath.Walk(w.tree.Dir, func(path string, _ os.FileInfo, err error) error {
		return os.Lchown(path, int(who.UID), int(who.GID))
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

// run runs a program as a session; it returns everything it wrote.
func (w workbench) run(t *testing.T, p agent.Program) (sandbox.Exit, string) {
	t.Helper()
	spec, err := session.Environment(t.Context(), session.Surroundings{
		Owner: owner(), Limits: sandbox.Limits{Timeout: 10 * time.Minute}, Path: w.task.Path, Home: w.task.Home, Top: w.task.Top,
	})
	if err != nil {
		t.Fatal(err)
	}
	spec.Tree = w.tree
	var out strings.Builder
	exit, err := session.Run(t.Context(), session.Running{
		Session: session.Session{ID: "tool-abcde", Agent: "command", Started: time.Now(), Dir: filepath.Join(w.dir, "session")},
		Driver:  w.driver, Spec: spec, Program: p, Cwd: w.task.Top,
		Output: func(l session.Line) { out.WriteString(l.Text + "\n") },
	})
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

func TestRealToolsWorkInside(t *testing.T) {
	// Its cache is empty, and what runs in the end is one line: to make good code of the standard library is a third of the work.
	quick := "-gcflags=all=-N -l -dwarf=false"
	goes, built := []string{"go", "test", "-vet=off", quick, "-ldflags=-s -w", "./..."}, "ok  \texample.org/x"
	if testing.Short() { // it compiles three times as much
		goes, built = []string{"go", "run", quick, "-ldflags=-s -w", "."}, "sum 3"
	}
	for _, row := range []struct {
		name, tool string
		files      map[string]string
		argv       []string
		want       string
	}{
		{"go with a module", "go", map[string]string{
			"go.mod": "module example.org/x\n\ngo 1.21\n", "x.go": "package main\n\nfunc sum(a, b int) int { return a + b }\n\nfunc main() { println(\"sum\", sum(1, 2)) }\n",
			"x_test.go": "package main\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif sum(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n",
		}, goes, built},
		{"node with worker threads", "node", map[string]string{"package.json": "{}"},
			[]string{"node", "-e", `const {Worker}=require("worker_threads"); require("fs").promises.writeFile("out","x").then(()=>new Worker("console.log('worked')",{eval:true}))`}, "worked"},
		{"npm", "npm", map[string]string{"package.json": `{"scripts":{"hi":"node -p 6*7"}}`}, []string{"npm", "run", "hi"}, "42"},
		{"python with processes", "python3", map[string]string{"setup.py": ""},
			[]string{"python3", "-c", "import multiprocessing as m, tempfile, ssl, sqlite3\nwith m.Pool(2) as p: print(sum(p.map(abs, [-40, -2])))"}, "42"},
		{"git", "git", nil, []string{"sh", "-c", "git init -q . && git add -A && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --format=%s && git gc -q"}, "x"},
		{"a pipeline of the usual", "sed", map[string]string{"f": "one\n"}, []string{"bash", "-c", "sed -i s/one/two/ f && find . -name f | xargs grep -c two && tar cf - f | tar tf - && date && id -un && stat -c %n /etc/localtime"}, "agent"},
		{"gofmt from the toolchain", "gofmt", map[string]string{"x.go": "package x\nfunc  F( ){ }\n"}, []string{"gofmt", "-l", "."}, "x.go"},
		{"make", "make", map[string]string{"Makefile": "all:\n\t@echo made\n"}, []string{"make", "-j4"}, "made"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if _, err := exec.LookPath(row.tool); err != nil {
				t.Skipf("SKIPPED: %s is not installed", row.tool)
			}
			w := newWorkbench(t, row.files)
			w.task.Argv = row.argv
			p, err := command.New().Program(w.task)
			if err != nil {
				t.Fatal(err)
			}
			exit, out := w.run(t, p)
			if exit.Code != 0 || exit.Limit != nil || !strings.Contains(out, row.want) {
				t.Errorf("%s\n%s", session.Describe(exit), out)
			}
		})
	}
}

func TestAReplayIsARealProcessInTheSandbox(t *testing.T) {
	w := newWorkbench(t, map[string]string{"sum": "1 - 2\n"})
	p, err := replay.New().Program(agent.Task{Script: []byte(`
steps:
  - run: grep -q '1 + 2' sum
    expect: fail
  - when: failed
    replace: {path: sum, old: "-", new: "+"}
  - run: grep '1 + 2' sum && test $PPID != 1 && id -u
    expect: pass
`)})
	if err != nil {
		t.Fatal(err)
	}
	exit, out := w.run(t, p)
	if exit.Code != 0 || !strings.Contains(out, "1 + 2") {
		t.Errorf("%s\n%s", session.Describe(exit), out)
	}
	if raw, err := os.ReadFile(filepath.Join(w.tree.Dir, "sum")); err != nil || string(raw) != "1 + 2\n" {
		t.Errorf("%q, %v", raw, err)
	}
}
