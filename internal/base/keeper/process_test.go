package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"unsafe"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/release"
)

// TestARealTrialIsConfirmed has real processes on both ends of the pipe.
func TestARealTrialIsConfirmed(t *testing.T) {
	home, r := armedHome(t)
	disktest.Put(t, plays(home, "code"), plain, 0o600)
	keeper := keeps(t, home, InService+"=1")
	await(t, "end of the host change", over(home))
	want := lines("old at armed", "handed over: <nil>", "new at handed", "new ends", "new at ready 1",
		"asked: <nil>; a wrong code: 4 left, this is not the code", `confirmed by "somebody", <nil>`)
	if got := noted(t, home); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if now, err := release.In(home, disk.Ops{}).Current(); now != r.New || err != nil {
		t.Errorf("current is %.12s, %v", now, err)
	}
	if left := lies(t, home); left != "" {
		t.Errorf("left over: %q", left)
	}

	// What a daemon on trial leaves is the keeper's, and it takes the dead away.
	await(t, "keeper that adopts", func() bool {
		raw, err := os.ReadFile(plays(home, "adopted-by"))
		return err == nil && string(raw) == strconv.Itoa(keeper.Process.Pid)
	})
	await(t, "end of the dead", func() bool { return childrenOf(keeper) == 1 })
}

// What a version on trial leaves behind would work on beside the old one, in the same home. The way back runs from a copy, and after
// all of that is gone.
func TestNothingSurvivesATrialThatGoesBack(t *testing.T) {
	home, r := armedHome(t)
	disktest.Put(t, plays(home, "fail"), "", 0o600)
	keeps(t, home, InService+"=1")
	await(t, "end of the host change", over(home))
	want := lines("old at armed", "handed over: <nil>", "new at handed", "new ends", "new at ready 1", "it dies",
		"revert from old at back with 0 survivors", "revert from old at back with 0 survivors", "old at back")
	if got := noted(t, home); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if now, err := release.In(home, disk.Ops{}).Current(); now != r.Old || err != nil {
		t.Errorf("current is %.12s, %v", now, err)
	}
	if left := alive(home); len(left) > 0 {
		t.Errorf("these run on: %v", left)
	}
	raw, err := os.ReadFile(plays(home, "log"))
	if err != nil || strings.Count(string(raw), `not yet`) != 1 || strings.Count(string(raw), "without a row\n") != 1 {
		t.Errorf("the log does not say what the way back said: %v", err)
	}
	if left := lies(t, home); left != "" {
		t.Errorf("left over: %q", left)
	}
}

// A service starts its keeper again and again; a release that was kept and does not start any more would be tried each time, whatever is
// installed.
func TestAReleaseThatDoesNotStartTellsTheWayToTheInstalledOne(t *testing.T) {
	home := furnish(t, false)
	releases := release.In(home, disk.Ops{})
	if err := releases.Install(filepath.Join(home, "old"), release.Release{}); err != nil {
		t.Fatal(err)
	}
	serves := func() string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "/proc/self/exe", "serve", home).CombinedOutput()
		if ended := new(exec.ExitError); !errors.As(err, &ended) || ended.ExitCode() != 3 {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	fails := func(name string) string {
		t.Helper()
		from := filepath.Join(home, name)
		err := errors.Join(os.Mkdir(from, 0o700), os.WriteFile(filepath.Join(from, release.Program), []byte("#!/bin/sh\n# "+name+"\nexit 3\n"), 0o700))
		if err != nil {
			t.Fatal(err)
		}
		return from
	}
	broken, err := releases.Put(fails("broken"), release.Release{})
	if err == nil {
		err = releases.Turn(broken.Digest)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(makeFolder(disk.Ops{}, home), reserve(disk.Ops{}, home, 1)); err != nil { // as an arming that broke off does
		t.Fatal(err)
	}
	way := "remove " + filepath.Join(releases.Dir, release.Installed)
	if out := serves(); !strings.Contains(out, way) {
		t.Errorf("it says %q", out)
	}
	if left := lies(t, home); left != "" {
		t.Errorf("a keeper that has begun leaves %q", left)
	}
	if err := releases.Install(fails("installed"), release.Release{}); err != nil {
		t.Fatal(err)
	}
	if out := serves(); strings.Contains(out, way) {
		t.Errorf("of what is installed it says %q", out)
	}
}

// Services that somebody restarted long before are the keeper's children by then, too.
func TestWhatBeganBeforeADaemonIsNotItsSurvivor(t *testing.T) {
	runtime.LockOSThread() // of one thread's children the older ones are named first
	defer runtime.UnlockOSThread()
	began := func() (*exec.Cmd, deadman.Process) {
		cmd := exec.Command("/proc/self/exe", "survive", t.TempDir(), "stubborn")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		is, err := deadman.Look(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return cmd, is
	}
	end := func(cmd *exec.Cmd) { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	service, older := began()
	defer end(service)
	daemon, is := began()
	for is.Start == older.Start { // the clock of processes is a coarse one
		end(daemon)
		daemon, is = began()
	}
	end(daemon)
	_, survivor := began()
	is.Start = survivor.Start // it may have left that within one tick of the clock
	if err := endSurvivors(is); err != nil {
		t.Error(err)
	}
	if deadman.Alive(survivor) || !deadman.Alive(older) {
		t.Errorf("the survivor is alive: %t, the service is: %t", deadman.Alive(survivor), deadman.Alive(older))
	}
}

// Which release a daemon is of. Only where a host change says that does the copy of the old one count.
func TestADaemonIsStartedByTheReleaseThatIsSaid(t *testing.T) {
	gone := func(home, digest string) error {
		return os.RemoveAll(filepath.Join(release.In(home, disk.Ops{}).Dir, digest))
	}
	for name, row := range map[string]struct {
		spoil  func(home string) error
		digest string
		runs   string // "" = nothing does
		says   string
	}{
		"the current one":          {nil, "", "old", "no process here"},
		"the one that is said":     {nil, furnished.new, "new", "no process here"},
		"the copy":                 {func(home string) error { return gone(home, furnished.old) }, furnished.old, "old", "no process here"},
		"the current one is gone":  {func(home string) error { return gone(home, furnished.old) }, "", "", "open the release"},
		"none is the current one":  {func(home string) error { return gone(home, "current") }, "", "", "find the release"},
		"the one said is not here": {nil, strings.Repeat("0", 64), "", "open the release"},
	} {
		t.Run(name, func(t *testing.T) {
			home := furnish(t, true)
			if row.spoil != nil {
				if err := row.spoil(home); err != nil {
					t.Fatal(err)
				}
			}
			var program []byte
			_, err := start(home, row.digest, Hello{}, func(cmd *exec.Cmd) (err error) {
				program, err = io.ReadAll(cmd.ExtraFiles[programAt-pipeAt])
				return errors.Join(err, errors.New("no process here"))
			})
			if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(string(program), "echo "+row.runs) != (row.runs != "") || row.runs == "" && program != nil {
				t.Errorf("%q, %v", program, err)
			}
		})
	}
}

// The way back of the old release is judged by how it ends, and what it says at its end is told.
func TestARevertTellsWhyItFails(t *testing.T) {
	home := furnish(t, true)
	if err := revert(t.Context(), home, Record{Old: furnished.old}); err != nil {
		t.Errorf("it ends well: %v", err)
	}
	for program, want := range map[string]string{
		"#!/bin/sh\necho not yet; exit 3\n":                         `exit status 3: "not yet"`,
		"#!/bin/sh\nhead -c 5000 /dev/zero; echo the end; exit 3\n": `the end"`,
		"\x00": "exec format error",
	} {
		from := t.TempDir()
		disktest.Put(t, filepath.Join(from, release.Program), program, 0o700)
		r, err := release.In(home, disk.Ops{}).Put(from, release.Release{})
		if err != nil {
			t.Fatal(err)
		}
		if err := revert(t.Context(), home, Record{Old: r.Digest}); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 5*revertTail {
			t.Errorf("%.200v, want %s", err, want)
		}
	}
	if err := revert(t.Context(), home, Record{Old: strings.Repeat("0", 64)}); !errors.Is(err, release.ErrAbsent) {
		t.Errorf("without a release: %v", err)
	}
	last := tail{max: 4}
	for _, said := range []string{"abc", "de", "", "fghijk", "l"} {
		if n, err := last.Write([]byte(said)); n != len(said) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if string(last.last) != "ijkl" {
		t.Errorf("%q is the end", last.last)
	}
}

// The way back is nobody's child who asks by a key: it has a session of its own. What it leaves ends with it, and is not waited for though it
// holds on to its output.
func TestARevertIsAloneAndLeavesNothing(t *testing.T) {
	processes{tell: t.Logf}.adopt(true)
	defer processes{tell: t.Logf}.adopt(false)
	home, from := furnish(t, true), t.TempDir()
	program := "#!/bin/sh\nsleep 600 &\nread -r pid name state parent group session rest <\"/proc/$$/stat\"; echo \"$pid $session $!\"; exit 3\n"
	disktest.Put(t, filepath.Join(from, release.Program), program, 0o700)
	r, err := release.In(home, disk.Ops{}).Put(from, release.Release{})
	if err != nil {
		t.Fatal(err)
	}
	before := filesOpen(t)
	err = revert(t.Context(), home, Record{Old: r.Digest})
	if err == nil {
		t.Fatal("no error")
	}
	if after := filesOpen(t); after > before {
		t.Errorf("%d files stay open", after-before)
	}
	var pid, session, left int
	_, said, _ := strings.Cut(err.Error(), `: "`)
	if _, failed := fmt.Sscanf(said, "%d %d %d", &pid, &session, &left); failed != nil || pid != session {
		t.Errorf("its session is not its own: %v", err)
	}
	if is, err := deadman.Look(left); err == nil && deadman.Alive(is) {
		t.Errorf("%d runs on", left)
	}
}

// What a daemon leaves becomes the keeper's child, and no longer once nothing is on trial.
func TestAFamilyAdoptsAndDoesSoNoLonger(t *testing.T) {
	const getChildSubreaper = 37
	told := 0
	p := processes{tell: func(string, ...any) { told++ }}
	for _, yes := range []bool{true, false} {
		p.adopt(yes)
		var is int32
		if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, getChildSubreaper, uintptr(unsafe.Pointer(&is)), 0); errno != 0 || (is != 0) != yes {
			t.Errorf("asked for %t it is %d, %v", yes, is, errno)
		}
	}
	if told > 0 {
		t.Errorf("told %d times", told)
	}
}

// A daemon on trial is told the limits that it is within, and a keeper what it could not do. Every one of them runs.
func TestADaemonOnTrialRunsThoughItCannotBeLimited(t *testing.T) {
	for _, row := range []struct {
		name    string
		onTrial bool
		group   bool // there is one, which takes no limits
		limits  bool // the daemon hears of them
		left    bool // the group
		says    string
	}{
		{"not on trial, no group", false, false, true, false, ""},
		{"not on trial", false, true, true, false, ""},
		{"on trial, no group", true, false, true, false, "have no limits: because"},
		{"on trial", true, true, false, true, "it is tried without limits"},
	} {
		t.Run(row.name, func(t *testing.T) {
			home, from := furnish(t, false), t.TempDir()
			program := "#!/bin/sh\nread -r hello <&3; echo \"$hello\" >\"$5/heard\"\n"
			disktest.Put(t, filepath.Join(from, release.Program), program, 0o700)
			r, err := release.In(home, disk.Ops{}).Put(from, release.Release{})
			if err != nil {
				t.Fatal(err)
			}
			told, f := "", &fence{}
			if row.group {
				at := t.TempDir()
				f = &fence{memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one")}
				grouped(t, f.memory, nil)
			}
			p := processes{fence: f, tell: func(format string, a ...any) { told += fmt.Sprintf(format, a...) }}
			c, err := p.start(home, r.Digest, Hello{Limits: few}, row.onTrial, errors.New("because"))
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for range c.words {
				}
			}()
			if how := <-c.ended; how.status != 0 {
				t.Errorf("it ended with %s", how.why)
			}
			heard, err := os.ReadFile(filepath.Join(home, "heard"))
			if err != nil || strings.Contains(string(heard), `"memory":402653184`) != row.limits {
				t.Errorf("it heard %q, %v", heard, err)
			}
			if !strings.Contains(told, row.says) || (told == "") != (row.says == "") {
				t.Errorf("the keeper tells %q, want %q", told, row.says)
			}
			if _, err := os.Stat(f.memory); (err == nil) != row.left {
				t.Errorf("the group is left: %t", err == nil)
			}
		})
	}
}

// A group that does not empty is told, by whoever wants it gone.
func TestAFamilyTellsWhatIsLeft(t *testing.T) {
	at := t.TempDir()
	grouped(t, filepath.Join(at, "one"), map[string]string{"file": ""})
	synctest.Test(t, func(t *testing.T) {
		told := 0
		p := processes{fence: &fence{memory: filepath.Join(at, "one"), processes: filepath.Join(at, "one")}, tell: func(string, ...any) { told++ }}
		if p.leave(); told != 1 {
			t.Errorf("told %d times", told)
		}
		if p.endSurvivors(child{}); told != 2 {
			t.Errorf("told %d times", told)
		}
		p.fence = &fence{}
		p.leave()
		if p.endSurvivors(child{}); told != 2 {
			t.Errorf("of nothing it is told %d times", told-2)
		}
	})
}

// What cannot be done with processes is told, and nothing else is.
func TestAFamilyTellsWhatItCannotDo(t *testing.T) {
	noGroup := t.TempDir() // has no limits that could be lifted
	for want, f := range map[int]*fence{0: {}, 1: {memory: noGroup, processes: noGroup}} {
		told := 0
		p := processes{fence: f, tell: func(string, ...any) { told++ }}
		p.adopt(true)
		p.adopt(false)
		if p.lift(); told != want {
			t.Errorf("%+v: told %d times", f, told)
		}
	}
}

// Who waits for the daemon is told how it ended: only the others that have are taken away.
func TestTheDaemonIsNotTakenAway(t *testing.T) {
	for _, daemon := range []bool{true, false} {
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		is, err := deadman.Look(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "end of the process", func() bool { return !deadman.Alive(is) })
		of := child{}
		if daemon {
			of.is = is
		}
		processes{}.reap(of)
		if err := cmd.Wait(); (err == nil) != daemon {
			t.Errorf("it is the daemon: %t; to wait for it: %v", daemon, err)
		}
	}
}

// Who starts a keeper again waits until one has the home, and says where it is told why none has.
func TestAKeeperThatIsStartedAgainAndEndsIsAnError(t *testing.T) {
	home := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(home, ".state"), 0o700), os.WriteFile(Folder(home), nil, 0o600)); err != nil { // nobody can keep that
		t.Fatal(err)
	}
	if err := again(home); err == nil || !strings.Contains(err.Error(), "has ended: exit status 1") {
		t.Errorf("%v", err)
	}
	log := filepath.Join(home, ".state", "logs", "daemon.log")
	if raw, err := os.ReadFile(log); err != nil || !strings.Contains(string(raw), "keep the home") {
		t.Errorf("%q, %v", raw, err)
	}
	disktest.Private(t, filepath.Dir(log), "daemon.log")
	if err := errors.Join(os.RemoveAll(log), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := again(home); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("%v", err)
	}
}
