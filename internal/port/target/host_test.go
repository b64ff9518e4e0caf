package target_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/target"
	"sallyport/internal/rule/trust"
	"sallyport/internal/who/person/persontest"
)

// aHost returns a host and a place in folders of the test's own.
func aHost(t *testing.T) (target.Host, target.Place) {
	t.Helper()
	top := t.TempDir()
	return target.Host{Changes: filepath.Join(t.TempDir(), "changes")}, target.Place{
		Project: git.Project{Top: top, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, Change: "chg-00000001",
	}
}

// refused holds err to be a refusal that says each of wants.
func refused(t *testing.T, err error, wants ...string) {
	t.Helper()
	if problem.KindOf(err) != problem.Refused || problem.Of(err).Next == "" {
		t.Fatalf("got %v (%s), want a refusal with a way out", err, problem.KindOf(err))
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("says  %s\nwants %s", err, want)
		}
	}
}

// patience is how long anything that must happen may take, on a machine that has much else to do.
const patience = 3 * time.Minute

// until polls a condition until it holds.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(5 * time.Millisecond); !ok(); {
		select {
		case <-deadline:
			t.Fatalf("after %s: %s", patience, what)
		case <-tick.C:
		}
	}
}

// pidIn reads a process number that a command wrote, once it is there.
func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	until(t, "no number in "+file, func() bool {
		raw, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
		return pid > 0 && strings.HasSuffix(string(raw), "\n")
	})
	return pid
}

// runs reports whether a process runs; one that has ended and was not waited for does not.
func runs(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestARestartRunsInTheWorkTreeAndSeesNothingOfTheDaemon(t *testing.T) {
	h, at := aHost(t)
	t.Setenv("SALLYPORT_TEST_SECRET", "x")
	leak, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	if _, err := unix.FcntlInt(leak.Fd(), unix.F_SETFD, 0); err != nil { // as one that was inherited
		t.Fatal(err)
	}
	old := unix.Umask(0o077) // as a daemon that a keeper started has it
	defer unix.Umask(old)
	words := `pwd -P >where; env | cut -d= -f1 | sort >names; ls /proc/self/fd >open; readlink /proc/self/fd/0 >in
		cut -d' ' -f1,5,6 /proc/$$/stat >session; umask >mask; echo "$SALLYPORT_CHANGE" >change`
	if err := h.Restart(t.Context(), trust.Target{Restart: words}, at); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(at.Project.Top, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(raw))
	}
	if top, _ := filepath.EvalSymlinks(at.Project.Top); read("where") != top {
		t.Errorf("it ran in %s", read("where"))
	}
	for name := range strings.Lines(read("names")) {
		switch name = strings.TrimSpace(name); name {
		case "PATH", "HOME", "USER", "LANG", "XDG_RUNTIME_DIR", "SALLYPORT_CHANGE", "PWD", "OLDPWD", "SHLVL", "_": // the last are the shell's own
		default:
			t.Errorf("it sees the variable %s", name)
		}
	}
	if got := strings.Fields(read("open")); len(got) > 4 { // 0 to 2, and the one that lists
		t.Errorf("it has the descriptors %v", got)
	}
	if ids := strings.Fields(read("session")); len(ids) != 3 || ids[0] != ids[1] || ids[0] != ids[2] {
		t.Errorf("process, group and session are %v", ids)
	}
	if read("in") != "/dev/null" || read("mask") != "0022" || read("change") != string(at.Change) {
		t.Errorf("stdin %s, umask %s, change %s", read("in"), read("mask"), read("change"))
	}
}

func TestARestartIsNotHeldUpByTheServiceItLeavesWithOpenOutput(t *testing.T) {
	h, at := aHost(t)
	began := time.Now()
	err := h.Restart(t.Context(), trust.Target{Restart: `(echo $$; exec sleep 60) & echo $! >pid; echo restarted`, Within: 30 * time.Second}, at)
	if err != nil || time.Since(began) > 20*time.Second {
		t.Fatalf("after %s: %v", time.Since(began), err)
	}
	pid := pidIn(t, filepath.Join(at.Project.Top, "pid"))
	defer syscall.Kill(pid, syscall.SIGKILL)
	if !runs(pid) {
		t.Error("the service was ended with its restart")
	}
	raw, err := os.ReadFile(filepath.Join(h.Changes, string(at.Change), "restart.out"))
	if err != nil || !strings.Contains(string(raw), "restarted\n") {
		t.Errorf("the output is %q, %v", raw, err)
	}
	disktest.Private(t, filepath.Join(h.Changes, string(at.Change)), "restart.out") // what a service prints may be a secret
}

func TestARestartThatFailsSaysHowAndItsLastLine(t *testing.T) {
	for name, test := range map[string]struct {
		words, want string
		within      time.Duration
	}{
		"an exit status":  {"echo first; echo; echo 'no such unit\033[31m' >&2; exit 3", `exit status 3: no such unit\x1b[31m`, 0},
		"a signal":        {"kill -9 $$", "signal: killed", 0},
		"no such program": {"exec ./no-such-program-at-all", "exit status 127", 0},
		"too long":        {"echo waiting; sleep 60", "it did not end within 6s: waiting", 6 * time.Second},
		"too much output": {"head -c 17000000 /dev/zero; sleep 60", "more than 16 MiB", 0},
		"no words":        {"exit 1", "the restart failed: exit 1: the command failed: exit status 1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, at := aHost(t)
			refused(t, h.Restart(t.Context(), trust.Target{Restart: test.words, Within: test.within}, at), "the restart failed: ", test.want)
			if st, err := os.Stat(filepath.Join(h.Changes, string(at.Change), "restart.out")); err != nil || st.Size() > 64<<10 {
				t.Errorf("its output is %v, %v", st, err)
			}
		})
	}
}

func TestARestartThatRunsOutOfTimeIsEndedWithAllItStarted(t *testing.T) {
	h, at := aHost(t)
	first := filepath.Join(at.Project.Top, "pid")
	for within := 2 * time.Second; within < time.Minute; within *= 2 { // on a machine that stands still it may end before it has begun
		refused(t, h.Restart(t.Context(), trust.Target{Restart: `sleep 60 & echo $! >pid; wait`, Within: within}, at), "it did not end within")
		if st, err := os.Stat(first); err == nil && st.Size() > 0 {
			break
		}
	}
	pid := pidIn(t, first)
	until(t, "its child runs on", func() bool { return !runs(pid) })

	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the daemon stops")
	go func() {
		pidIn(t, filepath.Join(at.Project.Top, "second"))
		cancel(gone)
	}()
	if err := h.Restart(ctx, trust.Target{Restart: `sleep 60 & echo $! >second; wait`}, at); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	pid = pidIn(t, filepath.Join(at.Project.Top, "second"))
	until(t, "its child runs on", func() bool { return !runs(pid) })
}

func TestWhatARestartWroteIsKeptAndToldWithoutSecrets(t *testing.T) {
	h, at := aHost(t)
	h.Clean = func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }
	err := h.Restart(t.Context(), trust.Target{Restart: "echo password hunter2; exit 1 # hunter2"}, at)
	refused(t, err, "password [redacted]")
	raw, readErr := os.ReadFile(filepath.Join(h.Changes, string(at.Change), "restart.out"))
	if readErr != nil || strings.Contains(string(raw)+err.Error(), "hunter2") {
		t.Errorf("kept %q and told %q, %v", raw, err, readErr)
	}
	err = h.Ask(t.Context(), trust.Target{Probe: trust.Probe{Command: "echo hunter2; false"}}, at)
	refused(t, err, "[redacted]")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("told %q", err)
	}
}

func TestAServiceThatWritesOnAndOnDoesNotFillTheDisk(t *testing.T) {
	h, at := aHost(t)
	begin := filepath.Join(at.Project.Top, "begin")
	if err := unix.Mkfifo(begin, 0o600); err != nil {
		t.Fatal(err)
	}
	err := h.Restart(t.Context(), trust.Target{Restart: `(exec 3>fifo.done; : <begin; i=0; while [ $i -lt 40 ]; do head -c 65536 /dev/zero; i=$((i+1)); done; echo end >&3; sleep 60) & echo $! >pid`}, at)
	if err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, filepath.Join(at.Project.Top, "pid"))
	defer syscall.Kill(-pid, syscall.SIGKILL)
	defer syscall.Kill(pid, syscall.SIGKILL)
	if err := os.WriteFile(begin, nil, 0); err != nil { // now that the end of the restart's own output was kept
		t.Fatal(err)
	}
	until(t, "it writes no more", func() bool {
		raw, _ := os.ReadFile(filepath.Join(at.Project.Top, "fifo.done"))
		return len(raw) > 0
	})
	out := filepath.Join(h.Changes, string(at.Change), "restart.out")
	if st, err := os.Stat(out); err != nil || st.Size() < 2<<20 {
		t.Fatalf("it did not write: %v, %v", st, err)
	}
	if err := h.Trim(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(out); err != nil || st.Size() != 0 {
		t.Errorf("%v, %v", st, err)
	}
}

func TestAProbeByCommandLeavesNothingBehind(t *testing.T) {
	h, at := aHost(t)
	probe := trust.Target{Probe: trust.Probe{Command: `sleep 60 & echo $! >pid`}}
	if err := h.Ask(t.Context(), probe, at); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, filepath.Join(at.Project.Top, "pid"))
	until(t, "what it started runs on", func() bool { return !runs(pid) })
	probe.Probe = trust.Probe{Command: "echo not yet >&2; exit 7"}
	refused(t, h.Ask(t.Context(), probe, at), "the probe did not pass: echo not yet >&2; exit 7: the command failed: exit status 7: not yet")
	probe.Probe = trust.Probe{Command: "sleep 60", Timeout: 200 * time.Millisecond}
	refused(t, h.Ask(t.Context(), probe, at), "it did not end within 200ms")
	probe.Probe = trust.Probe{Command: "head -c 3000000 /dev/zero || exit 9"}
	refused(t, h.Ask(t.Context(), probe, at), "exit status 9") // what is beyond the bound cannot be written
	if err := h.Ask(t.Context(), trust.Target{}, at); err != nil {
		t.Errorf("nothing was to be asked: %v", err)
	}
}

func TestOneTryOfAProbeByHTTP(t *testing.T) {
	hang := make(chan struct{})
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			fmt.Fprint(w, "fine")
		case "/error":
			w.WriteHeader(500)
		case "/away":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/hangs":
			<-hang
		case "/slow-body":
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			<-hang
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 100<<10))
		}
	}))
	t.Cleanup(served.Close)
	t.Cleanup(func() { close(hang) })
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	for name, test := range map[string]struct{ url, want string }{
		"answers":             {served.URL + "/ok", ""},
		"without an end":      {served.URL + "/endless", ""}, // the first MiB came in time
		"500":                 {served.URL + "/error", "the answer is 500"},
		"a redirect":          {served.URL + "/away", "the answer is 302"},
		"hangs":               {served.URL + "/hangs", "no whole answer within 1s"},
		"a body without end":  {served.URL + "/slow-body", "no whole answer within 1s"},
		"a header too large":  {served.URL + "/header", "exceeded"},
		"nobody listens":      {"http://" + dead.Addr().String() + "/x", "GET http://" + dead.Addr().String() + "/x: connection refused"},
		"listens and is mute": {"http://" + mute.Addr().String(), "no whole answer within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, at := aHost(t)
			within := patience
			if strings.HasSuffix(test.want, "within 1s") {
				within = time.Second
			}
			err := h.Ask(t.Context(), trust.Target{Probe: trust.Probe{HTTP: test.url, Timeout: within}}, at)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refused(t, err, "the probe did not pass: GET http://", test.want)
		})
	}
}

func TestAProposedProbeDoesNotLeaveTheMachine(t *testing.T) {
	h, at := aHost(t)
	probe := trust.Target{Proposed: true, Probe: trust.Probe{HTTP: "http://192.0.2.1:9/", Timeout: 5 * time.Second}}
	refused(t, h.Ask(t.Context(), probe, at), "the address leads to another machine")
}

// sequence serves 200 for every o and 500 for every x, and the last letter for ever.
func sequence(t *testing.T, letters string) (url string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := int(asked.Add(1)) - 1; letters[min(n, len(letters)-1)] == 'x' {
			w.WriteHeader(500)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestATargetCountsWhenItHasAnsweredForLongEnough(t *testing.T) {
	flap := strings.Repeat("ox", 500)
	for name, test := range map[string]struct {
		letters         string
		healthy, within time.Duration
		want            string
		askedMin        int64 // however slow the machine is
		askedMax        int64
	}{
		"at once":                 {"o", 150 * time.Millisecond, 10 * time.Second, "", 2, 1000},
		"after a while":           {"xxxxxo", 50 * time.Millisecond, 10 * time.Second, "", 7, 1000},
		"never":                   {"x", 50 * time.Millisecond, 200 * time.Millisecond, "the probe did not pass: GET http", 1, 1000},
		"once more the old one":   {"oxo", 50 * time.Millisecond, 10 * time.Second, "", 4, 1000},
		"answers and then dies":   {"ox", 10 * time.Second, 10 * time.Second, "the target answered at first, then stopped answering: GET http", 4, 4},
		"flaps":                   {flap, time.Second, 400 * time.Millisecond, "the target answered at first, then stopped answering: GET http", 2, 1000},
		"begins at the very last": {"xxxxxxxxo", 100 * time.Millisecond, 100 * time.Millisecond, "the probe did not pass", 1, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, at := aHost(t)
			url, asked := sequence(t, test.letters)
			probe := trust.Probe{HTTP: url, Healthy: test.healthy, Within: test.within, Every: 20 * time.Millisecond, Timeout: 5 * time.Second}
			if name == "begins at the very last" {
				probe.Every = 40 * time.Millisecond
			}
			err := h.Wait(t.Context(), trust.Target{Probe: probe}, at)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("after %d tries: %v", asked.Load(), err)
			}
			if test.want != "" {
				refused(t, err, "the answer is 500")
			}
			if n := asked.Load(); n < test.askedMin || n > test.askedMax {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

func TestWaitingForATargetEndsWithItsContext(t *testing.T) {
	h, at := aHost(t)
	url, asked := sequence(t, "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the daemon stops")
	done := make(chan error, 1)
	go func() {
		done <- h.Wait(ctx, trust.Target{Probe: trust.Probe{HTTP: url, Every: 10 * time.Millisecond}}, at)
	}()
	until(t, "it was not asked", func() bool { return asked.Load() > 1 })
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if err := h.Wait(t.Context(), trust.Target{Restart: "x"}, at); err != nil {
		t.Errorf("nothing was to be asked: %v", err)
	}
}

// A repository's own words never run as root for a repository that is another's.
func TestProposedCommandsRunAsTheRepositorysOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, to run as another")
	}
	h, at := aHost(t)
	const uid, gid = 54321, 54322
	at.Project.UID, at.Project.GID = uid, gid
	if err := os.Chown(at.Project.Top, uid, gid); err != nil {
		t.Fatal(err)
	}
	persontest.OpenWay(t, at.Project.Top)
	words := `echo "$(id -u) $(id -g) $(id -G) $HOME" >who`
	for proposed, want := range map[bool]string{true: "54321 54322 54322 /", false: "0 "} {
		tg := trust.Target{Restart: words, Proposed: proposed}
		if err := h.Restart(t.Context(), tg, at); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(at.Project.Top, "who"))
		if err != nil || !strings.HasPrefix(string(raw), want) {
			t.Errorf("proposed %v: ran as %q, %v", proposed, raw, err)
		}
		if err := os.Remove(filepath.Join(at.Project.Top, "who")); err != nil {
			t.Fatal(err)
		}
	}
}
