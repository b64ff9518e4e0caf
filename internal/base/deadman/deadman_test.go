package deadman_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
)

// TestMain lets this test program be the keeper too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && (os.Args[1] == "start" || os.Args[1] == "watch") {
		os.Exit(deadman.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func armed(t *testing.T, argv ...string) deadman.Armed {
	t.Helper()
	self, err := deadman.Self()
	if err != nil {
		t.Fatal(err)
	}
	return deadman.Armed{Landing: "lnd-0a1b2c3d", Argv: append([]string{"/bin/true"}, argv...), Env: []string{"A=b"}, Daemon: self,
		Due: within(time.Minute), At: time.Now()}
}

// within is a deadline so long from now.
func within(d time.Duration) deadman.Deadline {
	now, err := deadman.Now()
	if err != nil {
		panic(err)
	}
	return deadman.Deadline{Set: now, In: d}
}

func TestARecordIsArmedWholeOrNotAtAll(t *testing.T) {
	a := armed(t)
	seen := disktest.Everywhere(t, func(t *testing.T, c *disktest.Crash) {
		dir := filepath.Join(t.TempDir(), "deadman")
		var told bool
		crashed, err := disktest.Run(func() error {
			if err := deadman.Arm(c.Ops(), dir, a); err != nil {
				return err
			}
			told = true
			return deadman.Disarm(c.Ops(), dir, a.Landing)
		})
		if err != nil || crashed != c.Crashed() {
			t.Fatalf("crashed = %v, err = %v", crashed, err)
		}
		got, err := deadman.Read(deadman.Path(dir, a.Landing))
		switch {
		case err == nil && (got.Landing != a.Landing || got.Due != a.Due || got.Daemon != a.Daemon):
			t.Errorf("half a record: %+v", got)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("what is there cannot be read: %v", err)
		case err == nil && !c.Crashed():
			t.Error("still armed after Disarm")
		case err != nil && told && c.Crashed() && !c.After:
			t.Error("the record is gone though disarming had not begun")
		}
		// The next daemon settles what it finds; a landing of its own it arms and disarms twice.
		if err := deadman.Settle(disk.Ops{}, dir, func(string) bool { return false }); err != nil {
			t.Error(err)
		}
		left, _ := os.ReadDir(dir)
		for _, e := range left {
			if half, err := path.Match(deadman.HalfMade, e.Name()); err != nil || !half {
				t.Errorf("left over: %v", left)
			}
		}
		if err := errors.Join(deadman.Arm(disk.Ops{}, dir, a), deadman.Disarm(disk.Ops{}, dir, a.Landing), deadman.Disarm(disk.Ops{}, dir, a.Landing)); err != nil {
			t.Error(err)
		}
		if all, err := deadman.Records(dir); err != nil || len(all) != 0 {
			t.Errorf("records %v, %v", all, err)
		}
	})
	if want := []string{"deadman:folder", "deadman:write", "deadman:arm", "deadman:disarm"}; !slices.Equal(seen, want) {
		t.Errorf("operations %q, want %q", seen, want)
	}
}

func TestWhatCannotFireIsNotArmed(t *testing.T) {
	for name, spoil := range map[string]func(*deadman.Armed){
		"no name":                  func(a *deadman.Armed) { a.Landing = "" },
		"a name that is a path":    func(a *deadman.Armed) { a.Landing = "../x" },
		"a name that is an option": func(a *deadman.Armed) { a.Landing = "-rf" },
		"no command":               func(a *deadman.Armed) { a.Argv = nil },
		"a command from PATH":      func(a *deadman.Armed) { a.Argv = []string{"sallyport"} },
		"a deadline gone by":       func(a *deadman.Armed) { a.Due = within(-time.Second) },
		"a deadline without end":   func(a *deadman.Armed) { a.Due = within(2 * deadman.LifeMax) },
		"nobody":                   func(a *deadman.Armed) { a.Daemon.PID = 0 },
	} {
		a, dir := armed(t), t.TempDir()
		spoil(&a)
		if err := deadman.Arm(disk.Ops{}, dir, a); err == nil {
			t.Errorf("%s: armed", name)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: wrote %v", name, left)
		}
	}
}

func TestARecordThatCannotBeReadHidesNoOther(t *testing.T) {
	dir := t.TempDir()
	if all, err := deadman.Records(filepath.Join(dir, "none")); err != nil || all != nil {
		t.Errorf("a home without records: %v, %v", all, err)
	}
	disktest.Put(t, filepath.Join(dir, "lnd-00000000.json"), "{", 0o600)
	a := armed(t)
	if err := deadman.Arm(disk.Ops{}, dir, a); err != nil {
		t.Fatal(err)
	}
	all, err := deadman.Records(dir)
	if err == nil || !strings.Contains(err.Error(), "lnd-00000000.json") || len(all) != 1 || all[0].Landing != a.Landing {
		t.Errorf("records %+v, err = %v", all, err)
	}
}

func TestSettlingLeavesWhatIsOpenArmed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [dir]*")
	a, b := armed(t), armed(t)
	b.Landing = "lnd-closed00"
	if err := errors.Join(deadman.Arm(disk.Ops{}, dir, a), deadman.Arm(disk.Ops{}, dir, b)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"lnd-broken00.json": "{", "lnd-closed00.log": "{}"} {
		disktest.Put(t, filepath.Join(dir, name), text, 0o600)
	}
	if err := deadman.Settle(disk.Ops{}, dir, func(landing string) bool { return landing == a.Landing }); err != nil {
		t.Error(err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 || left[0].Name() != a.Landing+".json" || left[1].Name() != "lnd-closed00.log" {
		t.Errorf("left: %v; want the open landing's record and the keeper's log", left)
	}
	if err := deadman.Settle(disk.Ops{}, filepath.Join(dir, "none"), nil); err != nil {
		t.Errorf("a home without records: %v", err)
	}
}

func TestALivingProcessIsToldFromADeadOneAndFromAnotherOfItsNumber(t *testing.T) {
	self, err := deadman.Self()
	if err != nil || !deadman.Alive(self) {
		t.Fatalf("this process: %+v, %v", self, err)
	}
	for name, p := range map[string]deadman.Process{
		"another start": {PID: self.PID, Start: self.Start - 1, Boot: self.Boot},
		"another boot":  {PID: self.PID, Start: self.Start, Boot: "x"},
		"no process":    {PID: 1 << 22, Start: 1, Boot: self.Boot},
	} {
		if deadman.Alive(p) {
			t.Errorf("%s: alive", name)
		}
	}
	sleeper := daemon(t)
	if err := sleeper.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "a killed process that nobody has reaped counts as gone", func() bool { return !deadman.Alive(sleeper.process) })
}

// sleeper stands in for a daemon.
type sleeper struct {
	cmd     *exec.Cmd
	process deadman.Process
}

func daemon(t *testing.T) sleeper {
	t.Helper()
	// The shell tells its own number and start, and lives until it is killed.
	cmd := exec.Command("sh", "-c", `read -r line < /proc/$$/stat; echo "$line"; exec sleep 1000`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(line[:n]))
	self, err := deadman.Self()
	if err != nil {
		t.Fatal(err)
	}
	p := deadman.Process{PID: cmd.Process.Pid, Boot: self.Boot}
	if _, err := fmt.Sscan(fields[21], &p.Start); err != nil || !deadman.Alive(p) {
		t.Fatalf("daemon %+v from %q: %v", p, line[:n], err)
	}
	return sleeper{cmd, p}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(3*time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited for nothing: %s", what)
		case <-tick.C:
		}
	}
}

// keepers returns the processes that watch record.
func keepers(t *testing.T, record string) (pids []string) {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(raw), "\x00watch\x00"+record+"\x00") {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func states(t *testing.T, record string) (all []string) {
	t.Helper()
	story, err := deadman.Story(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range story {
		all = append(all, e.State)
	}
	return all
}

// watched arms a record for a daemon that can be killed and starts a keeper on it.
func watched(t *testing.T, script string) (dir, record string, d sleeper) {
	t.Helper()
	dir, d = t.TempDir(), daemon(t)
	a := armed(t)
	a.Daemon, a.Argv, a.Env = d.process, []string{"/bin/sh", "-c", script}, []string{"PATH=/usr/bin:/bin", "DIR=" + dir}
	if err := deadman.Arm(disk.Ops{}, dir, a); err != nil {
		t.Fatal(err)
	}
	record = deadman.Path(dir, a.Landing)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is one already
		if err := deadman.Start(context.Background(), self, record); err != nil {
			t.Fatal(err)
		}
	}
	if n := keepers(t, record); len(n) != 1 {
		t.Fatalf("%d keepers", len(n))
	}
	t.Cleanup(func() { // whatever happened, the keeper ends
		_ = deadman.Disarm(disk.Ops{}, dir, a.Landing)
		until(t, "the keeper ends once the record is gone", func() bool { return len(keepers(t, record)) == 0 })
	})
	return dir, record, d
}

func TestTheKeeperRunsTheCommandOnceTheDaemonIsKilled(t *testing.T) {
	dir, record, d := watched(t, `echo "$DIR" > "$DIR/fired"; rm "$DIR/lnd-0a1b2c3d.json"`)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the keeper has ended", func() bool { return len(keepers(t, record)) == 0 })
	if raw, err := os.ReadFile(filepath.Join(dir, "fired")); string(raw) != dir+"\n" {
		t.Errorf("the command left %q, %v", raw, err)
	}
	if got := states(t, record); !slices.Equal(got, []string{"watching", "fired", "disarmed"}) {
		t.Errorf("the log tells %v", got)
	}
}

func TestTheKeeperEndsQuietlyOnceDisarmed(t *testing.T) {
	dir, record, _ := watched(t, `touch "$DIR/fired"`)
	if err := deadman.Disarm(disk.Ops{}, dir, "lnd-0a1b2c3d"); err != nil {
		t.Fatal(err)
	}
	until(t, "the keeper has ended", func() bool { return len(keepers(t, record)) == 0 })
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAFailingCommandIsTriedAgainAndTold(t *testing.T) {
	_, record, d := watched(t, `printf 'no such %s' home; test -e "$DIR/second" && rm "$DIR/lnd-0a1b2c3d.json"; touch "$DIR/second"; exit 3`)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the keeper has ended", func() bool { return len(keepers(t, record)) == 0 })
	story, err := deadman.Story(record)
	if err != nil || len(story) != 6 {
		t.Fatalf("story %+v, %v", story, err)
	}
	if e := story[2]; e.State != "failed" || e.Attempt != 1 || !strings.Contains(e.Why, "no such home") || !strings.Contains(e.Why, "exit status 3") {
		t.Errorf("the log does not say why: %+v", e)
	}
}

func TestTheKeeperHoldsNothingOfItsStarter(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	// What somebody left open without close-on-exec passes through every exec.
	leak, err := os.Create(filepath.Join(t.TempDir(), "leak"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	through, err := syscall.Dup(int(leak.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(through)
	_, record, _ := watched(t, `:`)
	pids := keepers(t, record)
	fds, err := filepath.Glob("/proc/" + pids[0] + "/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		runtime := strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/")
		standard := to == "/dev/null" && len(filepath.Base(fd)) == 1 && filepath.Base(fd) < "3"
		if err == nil && !standard && !runtime && to != strings.TrimSuffix(record, ".json")+".log" {
			t.Errorf("%s is %s", filepath.Base(fd), to)
		}
	}
	if to, _ := os.Readlink("/proc/" + pids[0] + "/cwd"); to != "/" {
		t.Errorf("it stands in %s", to)
	}
	if env, err := os.ReadFile("/proc/" + pids[0] + "/environ"); err != nil || strings.Contains(string(env), "HOME=") || !strings.HasPrefix(string(env), "PATH=/usr/bin:/bin\x00") {
		t.Errorf("its environment is %q, %v", env, err)
	}
	if args, err := os.ReadFile("/proc/" + pids[0] + "/cmdline"); err != nil || !strings.HasPrefix(string(args), os.Args[0]+"\x00watch\x00") {
		t.Errorf("whoever lists processes sees %q, %v", args, err)
	}
	raw, err := os.ReadFile("/proc/" + pids[0] + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if f[1] == fmt.Sprint(os.Getpid()) || f[3] != pids[0] {
		t.Errorf("parent %s, session %s: it must be nobody's child in a session of its own", f[1], f[3])
	}
}

// TestTheFirstDescriptorThatWasLeftOpenIsClosedToo: a shell's "3>lock" would hold that lock for as long as the keeper lives.
func TestTheFirstDescriptorThatWasLeftOpenIsClosedToo(t *testing.T) {
	leak, err := os.Create(filepath.Join(t.TempDir(), "leak"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	dir, a := t.TempDir(), armed(t)
	a.Daemon = daemon(t).process
	if err := deadman.Arm(disk.Ops{}, dir, a); err != nil {
		t.Fatal(err)
	}
	record := deadman.Path(dir, a.Landing)
	t.Cleanup(func() {
		_ = deadman.Disarm(disk.Ops{}, dir, a.Landing)
		until(t, "the keeper ends once the record is gone", func() bool { return len(keepers(t, record)) == 0 })
	})
	start := exec.Command("/proc/self/exe", "start", record)
	start.ExtraFiles = []*os.File{leak} // as 3
	if err := start.Run(); err != nil {
		t.Fatal(err)
	}
	pids := keepers(t, record)
	if len(pids) != 1 {
		t.Fatalf("%d keepers", len(pids))
	}
	fds, err := filepath.Glob("/proc/" + pids[0] + "/fd/*")
	if err != nil || len(fds) < 3 {
		t.Fatalf("it has %q open, %v", fds, err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to == leak.Name() {
			t.Errorf("%s is %s", filepath.Base(fd), to)
		}
	}
}

func TestAnAbsentKeeperIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sallyport-keeper")
	for range 2 {
		err := deadman.Start(context.Background(), path, "/nowhere.json")
		if !errors.Is(err, deadman.ErrNoKeeper) || !strings.Contains(err.Error(), path) {
			t.Errorf("err = %v", err)
		}
		disktest.Put(t, path, "no program", 0o600)
	}
}

func TestARecordThatIsNoneIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(t.TempDir(), "lnd-1.json")
	if err := deadman.Start(context.Background(), self, record); err != nil {
		t.Errorf("a record that was disarmed meanwhile: %v", err)
	}
	disktest.Put(t, record, "{", 0o600)
	if err := deadman.Start(context.Background(), self, record); err == nil || !strings.Contains(err.Error(), "lnd-1.json") || !strings.Contains(err.Error(), "unexpected end of JSON") {
		t.Errorf("err = %v", err)
	}
}

func TestTheRecordSaysAllThatFiringTakes(t *testing.T) {
	dir, a := t.TempDir(), armed(t, "daemon", "start")
	if err := deadman.Arm(disk.Ops{}, dir, a); err != nil {
		t.Fatal(err)
	}
	path := deadman.Path(dir, a.Landing)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"landing", "argv", "env", "daemon", "due", "at"} {
		if keys[k] == nil {
			t.Errorf("%q is missing in\n%s", k, raw)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}
