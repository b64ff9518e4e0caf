package bwrap_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/race"
	"sallyport/internal/base/race/racetest"
	"sallyport/internal/inside/runner"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/bwrap"
	"sallyport/internal/port/sandbox/sandboxtest"
)

// The test binary is its own launcher and init, and a daemon that dies.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "runner" {
		misbehave(os.Args[2])
		os.Exit(runner.Main(os.Args[2:]))
	}
	if os.Args[0] == "bwrap" {
		fmt.Fprintln(os.Stderr, "bwrap: no namespaces today")
		os.Exit(1)
	}
	if len(os.Args) == 4 && os.Args[1] == "doomed-daemon" {
		os.Exit(doomed(os.Args[2], os.Args[3]))
	}
	code := m.Run()
	if unwatchedDir != "" {
		_ = os.RemoveAll(unwatchedDir) // a temporary folder
	}
	os.Exit(code)
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// unwatchedDir is the folder of what unwatched has built.
var unwatchedDir string

var buildUnwatched = sync.OnceValues(func() (program string, err error) {
	if unwatchedDir, err = os.MkdirTemp("", "unwatched"); err != nil {
		return "", err
	}
	return racetest.Build(unwatchedDir)
})

// unwatched is this test without the race detector, as far as it only stands for builds of the runner. One that is tried starts thirty times,
// three times as slowly with the detector, which watches the same runner while it holds the port's promises.
func unwatched(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil || !race.Enabled {
		return self(t)
	}
	path, err := buildUnwatched()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func owner() sandbox.Owner {
	if os.Geteuid() == 0 {
		return sandbox.Owner{UID: 64123, GID: 64123}
	}
	return sandbox.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

func needBwrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("SKIPPED: bubblewrap is not installed")
	}
}

// withGroups are the parts of the port's promises in which control groups play a part.
var withGroups = []string{"program", "limits", "kill", "freeze", "attach", "view", "egress", "home"}

// Three drivers are held to the promises: this one, with the test as its runner, one without control groups, and one with the real
// runner, which as root is held to all of them. So of what the other two show as well this one takes a sample, as root.
func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	needBwrap(t)
	parts := sandboxtest.Parts()
	if os.Geteuid() == 0 {
		parts = slices.DeleteFunc(parts, func(part string) bool { return slices.Contains(withGroups, part) })
		parts = append(parts, disktest.Sample(t, withGroups, 4)...)
	}
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()})
	sandboxtest.Run(t, func(t *testing.T) sandboxtest.Setup {
		return sandboxtest.Setup{Driver: d, Owner: owner(), Root: t.TempDir(), Images: d.Images()}
	}, parts...)
	for _, folder := range d.GroupFolders() {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("control groups are left in %s: %v", folder, err)
		}
	}
}

func TestTheDriverHoldsThePortsPromisesWithoutControlGroups(t *testing.T) {
	needBwrap(t)
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()})
	if os.Geteuid() != 0 && len(d.GroupFolders()) == 0 {
		t.Skip("SKIPPED: this user has no control groups, so the test above was this one")
	}
	d.WithoutGroups()
	sandboxtest.Run(t, func(t *testing.T) sandboxtest.Setup {
		return sandboxtest.Setup{Driver: d, Owner: owner(), Root: t.TempDir(), Images: d.Images()}
	}, withGroups...) // the rest knows no control groups
}

// A session's own limit may be lower than ours, and no sandbox can raise it.
func TestAMachineThatGivesFewDescriptorsHasSandboxesToo(t *testing.T) {
	needBwrap(t)
	out, err := exec.Command("sh", "-c", `ulimit -n 400; exec "$0" -test.v -test.run '^TestTheProbeNamesEverythingItTried$'`, self(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestTheProbeNamesEverythingItTried") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestASandboxOfRootsHasAUIDOfItsOwnAlsoWhereTheProbeFailed: a daemon asks once, at its start, and starts sandboxes for days. A probe that a busy
// machine has failed is tried again at the first of them, which must not be one that runs as root.
func TestASandboxOfRootsHasAUIDOfItsOwnAlsoWhereTheProbeFailed(t *testing.T) {
	dir := t.TempDir()
	disktest.Put(t, filepath.Join(dir, "bwrap"), "#!/bin/sh\nexit 1\n", 0o755)
	for name, path := range map[string]string{"a bubblewrap that starts nothing": dir, "none": filepath.Join(dir, "none")} {
		r, err := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir(), Path: path}).Probe(t.Context())
		if err == nil || r.OwnUID != (os.Geteuid() == 0) {
			t.Errorf("%s: own uid %t, %v", name, r.OwnUID, err)
		}
	}
}

func TestTheProbeNamesEverythingItTried(t *testing.T) {
	needBwrap(t)
	root := t.TempDir()
	d := bwrap.New(bwrap.Config{Self: self(t), Root: root})
	r, err := d.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Driver != "bwrap" || r.Freezer == "" || r.Memory == "" {
		t.Errorf("%+v", r)
	}
	names := map[string]bool{}
	for _, c := range r.Checks {
		names[c.Name] = true
		if !c.OK {
			t.Errorf("%+v", c)
		}
	}
	for _, want := range []string{"bubblewrap", "user namespaces", "overlay", "confinement", "memory limit", "process limit", "disk limit", "descriptor limit"} {
		if !names[want] {
			t.Errorf("no check named %q", want)
		}
	}
	if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWithoutBubblewrapNothingIsRunAndTheWayOutIsNamed(t *testing.T) {
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir(), Path: t.TempDir()})
	_, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Owner: owner(), Argv: []string{"true"}, Tree: sandbox.Tree{Dir: t.TempDir()}})
	p := problem.Of(err)
	if p.Kind != problem.Unavailable || !strings.Contains(p.Text, "bubblewrap") || p.Next != "sudo apt-get install bubblewrap" {
		t.Errorf("%+v", p)
	}
}

func TestABubblewrapThatFailsIsQuotedAndNothingIsRun(t *testing.T) {
	bin := t.TempDir()
	if err := os.Symlink(self(t), filepath.Join(bin, "bwrap")); err != nil {
		t.Fatal(err)
	}
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir(), Path: bin})
	_, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Owner: owner(), Argv: []string{"true"}, Tree: sandbox.Tree{Dir: t.TempDir()}})
	p := problem.Of(err)
	if p.Kind != problem.Unavailable || p.Next != "sallyport doctor" || !strings.Contains(p.Text, "no namespaces today") {
		t.Errorf("%+v", p)
	}
}

// TestABubblewrapThatIsEndedBeforeTheSandboxIsUpLeavesNothing: what it had begun holds the socket and would wait for ever.
func TestABubblewrapThatIsEndedBeforeTheSandboxIsUpLeavesNothing(t *testing.T) {
	bin, err := os.MkdirTemp("/var/tmp", "spbwrap") // a script cannot be started from the folder that the launcher covers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(bin) })
	left := filepath.Join(bin, "left")
	script := "#!/bin/sh\n[ \"$1\" != --version ] || exit 0\nsleep 1000 &\necho $! > " + left + "\nkill -KILL $$\n"
	if err := errors.Join(os.WriteFile(filepath.Join(bin, "bwrap"), []byte(script), 0o755), os.WriteFile(left, nil, 0o666), os.Chmod(left, 0o666), os.Chmod(bin, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*bwrap.Driver{
		"with control groups":    bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir(), Path: bin}),
		"without control groups": bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir(), Path: bin}).WithoutGroups(),
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			go func() {
				_, err := d.Probe(t.Context())
				ended <- err
			}()
			select {
			case err := <-ended:
				if problem.KindOf(err) != problem.Unavailable {
					t.Errorf("%v", err)
				}
			case <-time.After(4 * time.Minute):
				t.Fatal("the driver waits for what bubblewrap has left")
			}
			raw, err := os.ReadFile(left)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil {
				t.Fatalf("bubblewrap has left nothing: %q", raw)
			}
			if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(line), "sleep\x00") { // one that has ended has none
				t.Errorf("process %d is left: %q", pid, line)
			}
		})
	}
}

// TestWhatBuildingASandboxTakesIsNotItsProgramsTime: a busy machine has used up a small limit before the program began.
func TestWhatBuildingASandboxTakesIsNotItsProgramsTime(t *testing.T) {
	needBwrap(t)
	bubblewrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := os.MkdirTemp("/var/tmp", "spbwrap") // a script cannot be started from the folder that the launcher covers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(bin) })
	slow := filepath.Join(bin, "slow")
	// Once that file is there it takes a second of the processor first, as its own /proc counts it in hundredths.
	disktest.Put(t, filepath.Join(bin, "bwrap"), "#!/bin/sh\nburnt=0\nwhile [ -e "+slow+" ] && [ $burnt -lt 100 ]; do\n"+
		"read -r line < /proc/self/stat; set -- $line -- \"$@\"; burnt=$((${14} + ${15})); while [ \"$1\" != -- ]; do shift; done; shift\n"+
		"done\nexec "+bubblewrap+" \"$@\"\n", 0o755)
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir(), Path: bin})
	if _, err := d.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, slow, "", 0o644)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	p, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Owner: owner(), Argv: []string{"sleep", "0.5"}, Env: []string{"PATH=/usr/bin:/bin"},
		Tree: sandbox.Tree{Dir: dir}, Limits: sandbox.Limits{Processor: 700 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 0 || exit.Limit != nil {
		t.Errorf("%+v %+v %v", exit, exit.Limit, err)
	}
}

func TestTheHomeIsNeverShown(t *testing.T) {
	needBwrap(t)
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "changes"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := bwrap.New(bwrap.Config{Self: self(t), Root: root})
	for _, source := range []string{root, filepath.Join(root, "changes"), filepath.Dir(root)} {
		_, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Owner: owner(), Argv: []string{"true"}, Tree: sandbox.Tree{Dir: t.TempDir()},
			Binds: []sandbox.Bind{{Source: source, Target: "/opt/x"}}})
		if err == nil || !strings.Contains(err.Error(), "home") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// doomed starts a sandbox that leaves processes everywhere, says so, and waits to be killed.
func doomed(root, mark string) int {
	dir := filepath.Join(root, "tree")
	if err := os.Mkdir(dir, 0o777); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		fmt.Println(err)
		return 1
	}
	path, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	d := bwrap.New(bwrap.Config{Self: path, Root: filepath.Join(root, "state")})
	r, w := io.Pipe()
	_, err = d.Start(context.Background(), sandbox.Spec{
		ID: "doomed", Owner: owner(), Tree: sandbox.Tree{Dir: dir}, Env: []string{"PATH=/usr/bin"}, Stdout: w,
		Argv: []string{"sh", "-c", "setsid sh -c 'setsid sleep " + mark + " & sleep " + mark + "' & sleep " + mark + " & echo ready; wait"},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	line, _ := bufio.NewReader(r).ReadString('\n')
	fmt.Print(line)
	select {}
}

func TestTheDeathOfTheDaemonIsTheEndOfItsSandboxes(t *testing.T) {
	needBwrap(t)
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("%d.5%d", 86400, os.Getpid())
	daemon := exec.Command(self(t), "doomed-daemon", root, mark)
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the daemon said %q", line)
	}
	waitFor(t, "the sandbox runs", func() bool { return count(t, mark) >= 3 })
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.Wait()
	waitFor(t, "nothing is left alive", func() bool { return count(t, mark) == 0 })

	// The next daemon of the home removes what the last one could not.
	next := bwrap.New(bwrap.Config{Self: self(t), Root: filepath.Join(root, "state")})
	for _, folder := range next.GroupFolders() {
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			t.Errorf("control groups are left in %s: %v", folder, err)
		}
	}
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(sandboxtest.Patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// count counts the host's processes that sleep for mark.
func count(t *testing.T, mark string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && string(raw) == "sleep\x00"+mark+"\x00" {
			n++
		}
	}
	return n
}

func TestASandboxThatIsWeakerThanItMustBeIsNamedAndRunsNothing(t *testing.T) {
	needBwrap(t)
	d := bwrap.New(bwrap.Config{Self: self(t), Root: t.TempDir()}).WithoutFilter()
	_, err := d.Probe(t.Context())
	p := problem.Of(err)
	if p.Kind != problem.Unavailable || !strings.Contains(p.Text, "weaker") || !strings.Contains(p.Text, "mount, also in a namespace") || !strings.Contains(p.Next, "doctor") {
		t.Errorf("%+v", p)
	}
	if process, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Owner: owner(), Argv: []string{"true"}, Tree: sandbox.Tree{Dir: t.TempDir()}}); err == nil {
		process.Kill()
		t.Error("something was run")
	}
	tries, err := d.SelfTest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	weak := map[string]bool{}
	for _, y := range tries {
		weak[y.Name] = !y.Held
	}
	if !weak["mount, also in a namespace of its own"] || !weak["use the kernel's keys"] || weak["read a file of the host"] || weak["connect to the host's loopback"] {
		t.Errorf("%+v", tries)
	}
}
