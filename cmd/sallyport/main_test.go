package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/keeper"
	"sallyport/internal/base/race/racetest"
	"sallyport/internal/who/person/persontest"
)

// TestMain makes this binary the real program, and its keeper, for every script and table.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "runner" { // inside a sandbox it has another name
		os.Exit(run())
	}
	// One more at a time than there are processors: many wait for a limit or an interval to pass. The command line may say otherwise.
	_ = flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1))
	testscript.Main(cleared{m}, map[string]func(){
		"sallyport":        func() { mayFill(); os.Exit(run()) },
		"sallyport-keeper": func() { os.Exit(keeper.Main(os.Args[1:], os.Stdout, os.Stderr)) },
		"service":          func() { os.Exit(service()) },
	})
}

func TestScripts(t *testing.T) {
	persontest.Ordinary(t, "some stories; they are marked")
	testscript.Run(t, testscript.Params{
		Files:               stories(t),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			from, err := programs(t, name)
			if err != nil {
				return err
			}
			p, err := newPlace(env.WorkDir, from)
			if err != nil {
				return err
			}
			for k, v := range p.env {
				env.Setenv(k, v)
			}
			holdModel(env)
			if disktest.Long() {
				err = source(env)
			}
			if err != nil {
				return err
			}
			env.Defer(func() {
				if err := p.leave(); err != nil {
					env.T().Fatal(err)
				}
			})
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "users" { // a story may be told as another user, too
				_, err := exec.LookPath("setpriv")
				return os.Geteuid() == 0 && err == nil, nil
			}
			if cond == "builder" { // of images, here of busybox; without control groups nobody builds
				_, err := exec.LookPath("buildah")
				_, err2 := exec.LookPath("busybox")
				_, err3 := os.Stat("/sys/fs/cgroup/memory")
				controllers, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
				holds := err3 == nil || strings.Contains(string(controllers), "memory")
				return os.Geteuid() == 0 && err == nil && err2 == nil && holds, nil
			}
			if cond == "disk" { // a story may have a disk of its own
				return mayMount(), nil
			}
			if cond == "turn" { // the end of a long story, in one run of four
				return disktest.Long() || disktest.Seed(t)%4 == 3, nil
			}
			if cond == "long" { // as `make soak` has it
				return disktest.Long(), nil
			}
			if cond != "ssh-keygen" {
				return false, fmt.Errorf("%q is no condition", cond)
			}
			dir, err := os.MkdirTemp("", "spkey")
			if err != nil {
				return false, err
			}
			defer os.RemoveAll(dir)
			return exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "key")).Run() == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"repo": cmdRepo, "exits": cmdExits, "id": cmdID, "until": cmdUntil, "keep": cmdKeep, "same": cmdSame,
			"killdaemon": cmdKillDaemon, "sql": cmdSQL, "count": cmdCount, "transcript": cmdTranscript, "target": cmdTarget,
			"model": cmdModel, "outside": cmdOutside, "disk": cmdDisk,
		},
	})
}

// ordinary stands in a story that is told once more for an ordinary user, with what is different for one.
var ordinary = regexp.MustCompile(`(?m)^# As an ordinary user too: .`)

const storyFiles = "testdata/script/*.txtar"

// stories are the files of those that are to be told.
func stories(t *testing.T) (files []string) {
	all, err := filepath.Glob(storyFiles)
	if err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		is := ordinary.Match(text)
		if is {
			marked++
		}
		if !persontest.Skips(is) {
			files = append(files, file)
		}
	}
	if marked < 10 {
		t.Errorf("only %d of %d stories are marked for an ordinary user", marked, len(all))
	}
	return files
}

// source says where this repository and its modules are, for a story that builds what it is about.
func source(env *testscript.Env) error {
	top, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	caches, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	modules, built, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	env.Setenv("SOURCE", top)
	env.Setenv("MODULES", modules)
	env.Setenv("BUILT", built)
	return err
}

// patience is how long anything that must happen may take, on a machine that has much else to do.
const patience = 4 * time.Minute

// place is where one person stands: a home folder, a home of sallyport's and a runtime folder.
type place struct {
	dir  string
	from string // the folder of the programs, if $PATH has others
	env  map[string]string
	run  string
}

// newPlace makes one below dir, for who starts the programs in a folder; git knows who the person is from their own configuration.
func newPlace(dir, from string) (*place, error) {
	run, err := os.MkdirTemp("", "spx") // a socket's path is short
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, from: from, run: run, env: map[string]string{
		"HOME": filepath.Join(dir, ".person"), "SALLYPORT_HOME": filepath.Join(dir, ".state-of-sallyport"), "XDG_RUNTIME_DIR": run,
		"LANG": "C.UTF-8", "TZ": "UTC", "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1", "GORACE": "atexit_sleep_ms=0 " + racetest.Noted(run), "PATH": os.Getenv("PATH"), "WORK": dir,
	}}
	if from != "" {
		p.env["PATH"] = from + string(filepath.ListSeparator) + p.env["PATH"]
	}
	if err := os.Mkdir(p.env["HOME"], 0o700); err != nil {
		return nil, err
	}
	config := "[user]\n\tname = Ann Example\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
	return p, os.WriteFile(filepath.Join(p.env["HOME"], ".gitconfig"), []byte(config), 0o600)
}

// command is the program, or any other, as this person starts it.
func (p *place) command(ctx context.Context, dir string, argv ...string) *exec.Cmd {
	program := argv[0]
	if p.from != "" && slices.Contains(names, program) {
		program = filepath.Join(p.from, program)
	}
	cmd := exec.CommandContext(ctx, program, argv[1:]...)
	cmd.Dir = dir
	for k, v := range p.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return cmd
}

// leave stops the daemon of every home below dir, where one runs, and removes what is not below dir. Error: what the race detector has found.
func (p *place) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	homes, _ := filepath.Glob(filepath.Join(p.dir, "*", ".state")) // the pattern is well-formed
	for _, state := range homes {
		out, err := p.command(ctx, p.dir, "sallyport", "daemon", "stop", "--home", filepath.Dir(state)).CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "daemon stop: %v\n%s", err, out)
		}
	}
	leaveServices(p.dir)
	defer os.RemoveAll(p.run)
	if found := racetest.Found(p.run); found != "" {
		return errors.New(found)
	}
	return nil
}

// cmdRepo makes a git repository of a folder: repo DIR.
func cmdRepo(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: repo DIR")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, words := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "the beginning"}} {
		ts.Check(ts.Exec("git", append([]string{"-C", dir}, words...)...))
	}
}

// cmdExits runs a program and holds it to an exit status: exits N COMMAND…
func cmdExits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d\nstdout:\n%s\nstderr:\n%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// cmdID takes the first id of a kind from what was said last: id VAR chg|apr|ckpt [N], N counts from 1.
func cmdID(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: id VARIABLE chg|apr|ckpt|code [N]")
	}
	n := 1
	if len(args) > 2 {
		n, _ = strconv.Atoi(args[2])
	}
	pattern := regexp.MustCompile(`\b` + args[1] + `-[0-9a-z]+(-[0-9a-f]+)?\b`)
	if args[1] == "code" { // that a change of the host is confirmed with
		pattern = regexp.MustCompile(`\b([A-Z2-9]{4}-){2}[A-Z2-9]{4}\b`)
	}
	var ids []string
	seen := map[string]bool{}
	for _, id := range pattern.FindAllString(ts.ReadFile("stdout")+"\n"+ts.ReadFile("stderr"), -1) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) < n {
		ts.Fatalf("%d ids of kind %s were said, not %d", len(ids), args[1], n)
	}
	ts.Setenv(args[0], ids[n-1])
}

// cmdSQL runs statements on the home's database as any program with its owner's rights could: sql STATEMENT…
func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sql STATEMENT…")
	}
	db, err := sql.Open("sqlite", filepath.Join(ts.Getenv("SALLYPORT_HOME"), ".state", "sallyport.db"))
	ts.Check(err)
	defer db.Close()
	for _, statement := range args {
		_, err := db.Exec(statement)
		ts.Check(err)
	}
}

// cmdOutside makes a folder that a group may be shown, wherever the tests' own folders are: outside NAME. Its path is in $NAME.
func cmdOutside(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: outside NAME")
	}
	dir, err := os.MkdirTemp("/var/tmp", "spout")
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(dir) })
	ts.Setenv(args[0], dir)
}

// cmdUntil runs a program again and again until what it says matches: until REGEXP COMMAND…
func cmdUntil(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND [ARG…]")
	}
	want := regexp.MustCompile(args[0])
	deadline := time.After(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		_ = ts.Exec(args[1], args[2:]...) // what it says decides
		said := ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if want.MatchString(said) {
			return
		}
		select {
		case <-deadline:
			ts.Fatalf("%q was not said in time; last:\n%s", args[0], said)
		case <-again.C:
		}
	}
}

var kept = map[*testscript.TestScript]map[string]picture{}

// cmdKeep remembers a repository as it is: keep NAME DIR.
func cmdKeep(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: keep NAME DIR")
	}
	p, err := takePicture(ts.MkAbs(args[1]))
	ts.Check(err)
	pictures.Lock()
	defer pictures.Unlock()
	if kept[ts] == nil {
		kept[ts] = map[string]picture{}
	}
	kept[ts][args[0]] = p
}

// cmdSame compares a repository with what was kept: same [-files] NAME DIR. With -files only the work tree counts.
func cmdSame(ts *testscript.TestScript, neg bool, args []string) {
	files := len(args) == 3 && args[0] == "-files"
	if files {
		args = args[1:]
	}
	if len(args) != 2 {
		ts.Fatalf("usage: same [-files] NAME DIR")
	}
	pictures.Lock()
	before, ok := kept[ts][args[0]]
	pictures.Unlock()
	if !ok {
		ts.Fatalf("nothing was kept as %s", args[0])
	}
	after, err := takePicture(ts.MkAbs(args[1]))
	ts.Check(err)
	if files {
		before, after = before.workTree(), after.workTree()
	}
	diff := before.differs(after)
	if (diff == "") == neg {
		ts.Fatalf("compared with %s:\n%s", args[0], diff)
	}
}

// cmdKillDaemon kills the home's daemon as a crash does, and waits until it is gone.
func cmdKillDaemon(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Exec("sallyport", "daemon", "status", "--json"))
	found := regexp.MustCompile(`"pid": (\d+)`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("the daemon does not say its pid")
	}
	pid, err := strconv.Atoi(found[1])
	ts.Check(err)
	ts.Check(kill(pid))
}

// kill ends one process at once and waits for its end.
func kill(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // nothing was written
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return err
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			return fmt.Errorf("process %d does not end", pid)
		}
		return err
	}
}

// cmdCount holds the number of lines in what was said that match: count N REGEXP.
func cmdCount(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: count N REGEXP")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	pattern, got := regexp.MustCompile(args[1]), 0
	for line := range bytes.Lines([]byte(ts.ReadFile("stdout"))) {
		if pattern.Match(line) {
			got++
		}
	}
	if got != want {
		ts.Fatalf("%d lines match %s, want %d:\n%s", got, args[1], want, ts.ReadFile("stdout"))
	}
}
