package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/internal/base/deadman"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
)

// A child that Ensure starts is this test binary: told by its words it plays a daemon.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "daemon" && os.Args[3] == "--home" {
		os.Exit(playDaemon(os.Args[4]))
	}
	os.Exit(m.Run())
}

// playDaemon answers on the home's socket until it is told to stop; a file in the home says how it behaves.
func playDaemon(home string) int {
	mood, _ := os.ReadFile(filepath.Join(home, "mood"))
	switch string(mood) {
	case "broken":
		fmt.Fprintln(os.Stderr, "no good\nsallyport: the database \x1b[31mis on fire\nnext: call the \x1b[31mbrigade")
		return 1
	case "taken":
		if err := os.WriteFile(filepath.Join(home, "pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			return 1
		}
		return ExitTaken
	case "silent":
		if err := os.WriteFile(filepath.Join(home, "pid"), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			return 1
		}
		<-time.After(time.Hour) // it is killed long before, or ends with nobody to miss it
		return 0
	}
	return serveAs(string(mood), home)
}

func serveAs(mood, home string) int {
	path, err := Me().Socket(home)
	if err != nil {
		log.Print(err)
		return 1
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		log.Print(err)
		return 1
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // of one that died
		log.Print(err)
		return 1
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		log.Print(err)
		return 1
	}
	done := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/daemon", func(w http.ResponseWriter, _ *http.Request) {
		build := api.Build()
		session, _ := unix.Getsid(0)
		d := api.Daemon{PID: os.Getpid(), Home: home, API: api.Version, Build: build, Working: boolInt(session == os.Getpid())}
		switch mood {
		case "old":
			d.Build, d.Working = "v0.0.1", 0
		case "old, works":
			d.Build, d.Working, d.Doing = "v0.0.1", 3, []string{"chg-00000001 working", "chg-00000002 landing\x1b[31m"}
		}
		json.NewEncoder(w).Encode(d)
	})
	mux.HandleFunc("POST /v1/approvals/{id}/approve", func(w http.ResponseWriter, r *http.Request) {
		heard := filepath.Join(home, "heard")
		before, _ := os.ReadFile(heard)
		body, _ := io.ReadAll(r.Body)
		if err := os.WriteFile(heard, fmt.Appendf(before, "%s %s\n", r.PathValue("id"), body), 0o600); err != nil {
			log.Print(err)
		}
		if mood == "dies once" && len(before) == 0 || mood == "dies" {
			os.Exit(9)
		}
		io.WriteString(w, "{}")
	})
	mux.HandleFunc("POST /v1/daemon/stop", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "{}")
		close(done)
	})
	srv := &http.Server{Handler: mux}
	go srv.Serve(l)
	<-done
	if err := srv.Shutdown(context.Background()); err != nil { // the answer to stop is out before the process ends
		log.Print(err)
	}
	return 0
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// place makes a home and a runtime folder of their own.
func place(t *testing.T, mood string) (Starter, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "spc") // t.TempDir has the test's name in it, and a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) }) // a folder of our own under the system's
	runtime, home := filepath.Join(dir, "run"), filepath.Join(dir, "home")
	for _, d := range []string{runtime, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	disktest.Put(t, filepath.Join(home, "mood"), mood, 0o600)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := Starter{Person: Me(), Self: self, Wait: 3 * time.Minute}
	t.Cleanup(func() { // whichever still answers here
		if c, err := s.Dial(context.Background(), home); err == nil {
			_ = Do(context.Background(), c, api.DaemonStop, api.Nothing{}) // it may end by itself meanwhile
		}
	})
	return s, home
}

// socketOf is where the daemon of a home listens; its folder is there.
func socketOf(t *testing.T, s Starter, home string) string {
	t.Helper()
	path, err := s.Socket(home)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnsureStartsADaemonOnceAndApartFromThisTerminal(t *testing.T) {
	s, home := place(t, "")
	if _, err := s.Dial(t.Context(), home); !errors.Is(err, ErrNoDaemon) {
		t.Fatalf("before the start: %v", err)
	}
	c, err := s.Ensure(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	first, err := Call(t.Context(), c, api.DaemonShow, api.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Do(context.Background(), c, api.DaemonStop, api.Nothing{}) }) // it may have ended by itself
	if first.Working != 1 {
		t.Error("the daemon has no session of its own")
	}
	disktest.Private(t, filepath.Join(home, ".state"), "logs/daemon.log")
	again, err := s.Ensure(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Call(t.Context(), again, api.DaemonShow, api.Nothing{}); err != nil || second.PID != first.PID {
		t.Errorf("a second daemon: %d and %d, %v", first.PID, second.PID, err)
	}
}

// TestTheKeepersCommandStartsNoDaemonForWhatIsDone holds that a daemon which a person has stopped stays away: what it had to finish it has
// disarmed before it went.
func TestTheKeepersCommandStartsNoDaemonForWhatIsDone(t *testing.T) {
	s, home := place(t, "")
	record := filepath.Join(filepath.Dir(home), "lnd-1.json")
	t.Setenv(deadman.RecordVariable, record)
	if _, err := s.Ensure(t.Context(), home); problem.KindOf(err) != problem.Conflict || !strings.Contains(err.Error(), "what the keeper wanted a daemon for is done") {
		t.Errorf("of what is disarmed: %v", err)
	}
	if _, err := s.Dial(t.Context(), home); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("one was started: %v", err)
	}
	disktest.Put(t, record, "", 0o600)
	if _, err := s.Ensure(t.Context(), home); err != nil {
		t.Errorf("of what is armed: %v", err)
	}
}

// A daemon that is killed can still be dialled for a moment: by what it was starting, which has its socket until it is another program.
func TestADaemonThatEndsWhileItIsDialledIsStartedAgain(t *testing.T) {
	s, home := place(t, "")
	path := socketOf(t, s, home)
	dying, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dying.(*net.UnixListener).SetUnlinkOnClose(false)
	dialled := make(chan error, 1)
	go func() {
		conn, err := dying.Accept()
		if err == nil {
			err = errors.Join(dying.Close(), conn.Close())
		}
		dialled <- err
	}()
	c, err := s.Ensure(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-dialled; err != nil {
		t.Error(err)
	}
	if is, err := Call(t.Context(), c, api.DaemonShow, api.Nothing{}); err != nil || is.PID == os.Getpid() {
		t.Errorf("%+v, %v", is, err)
	}
}

func TestManyCommandsAtOnceStartOneDaemon(t *testing.T) {
	s, home := place(t, "")
	pids := make(chan int)
	for range 8 {
		go func() {
			c, err := s.Ensure(t.Context(), home)
			if err != nil {
				t.Error(err)
				pids <- 0
				return
			}
			d, err := Call(t.Context(), c, api.DaemonShow, api.Nothing{})
			if err != nil {
				t.Error(err)
			}
			pids <- d.PID
		}()
	}
	first := <-pids
	for range 7 {
		if pid := <-pids; pid != first {
			t.Errorf("daemons %d and %d", first, pid)
		}
	}
	log, err := os.ReadFile(LogPath(home))
	if err != nil || len(log) != 0 {
		t.Errorf("a daemon was started in vain: %s %v", log, err)
	}
	c, err := s.Dial(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if err := Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
		t.Error(err)
	}
}

func TestADaemonThatDoesNotComeUpIsToldWithItsLastWordsAndItsLog(t *testing.T) {
	s, home := place(t, "broken")
	_, err := s.Ensure(t.Context(), home)
	p := problem.Of(err)
	if p.Kind != problem.Unavailable || !strings.Contains(p.Text, `ended at once: the database \x1b[31mis on fire`) || p.Next != `call the \x1b[31mbrigade` {
		t.Errorf("got %+v", p)
	}
}

func TestADaemonThatLostTheHomeToAnotherIsWaitedFor(t *testing.T) {
	s, home := place(t, "taken")
	go func() { // the other one answers only some time after the first has ended
		again := time.NewTicker(pollTime)
		defer again.Stop()
		late := 0
		for range again.C {
			raw, _ := os.ReadFile(filepath.Join(home, "pid"))
			pid, err := strconv.Atoi(string(raw))
			if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				late++
			}
			if late > 5 {
				serveAs("", home)
				return
			}
		}
	}()
	c, err := s.Ensure(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if err := Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
		t.Error(err)
	}
}

func TestADaemonThatNeverAnswersIsNotWaitedForForever(t *testing.T) {
	s, home := place(t, "silent")
	s.Wait = 300 * time.Millisecond
	_, err := s.Ensure(t.Context(), home)
	defer endDaemon(t, home)
	if p := problem.Of(err); p.Kind != problem.Unavailable || !strings.Contains(p.Text, "did not answer within 300ms") {
		t.Errorf("got %+v", p)
	}
}

// endDaemon kills a played daemon that does not listen to anybody, once it has said who it is.
func endDaemon(t *testing.T, home string) {
	t.Helper()
	deadline := time.After(3 * time.Minute)
	again := time.NewTicker(pollTime)
	defer again.Stop()
	for {
		raw, _ := os.ReadFile(filepath.Join(home, "pid"))
		if pid, err := strconv.Atoi(string(raw)); err == nil {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			return
		}
		select {
		case <-deadline:
			t.Error("the silent daemon never began")
			return
		case <-again.C:
		}
	}
}

func TestADaemonOfAnotherBuildThatWorksSaysAtWhatAndIsNotToBeInterrupted(t *testing.T) {
	s, home := place(t, "old, works")
	_, err := s.Ensure(t.Context(), home)
	p := problem.Of(err)
	if p.Kind != problem.Unavailable || p.Next != "sallyport daemon stop --wait" || !strings.Contains(p.Text, "v0.0.1") ||
		!strings.Contains(p.Text, "chg-00000001 working, chg-00000002 landing") || !strings.Contains(p.Text, "and 1 more") || strings.Contains(p.Text, "\x1b") {
		t.Errorf("%+v", p)
	}
}

func TestADaemonOfAnotherBuildIsNotUsed(t *testing.T) {
	s, home := place(t, "old")
	_, err := s.Ensure(t.Context(), home)
	if p := problem.Of(err); p.Next != "sallyport daemon stop" || !strings.Contains(p.Text, "v0.0.1") {
		t.Errorf("got %+v", p)
	}
	c, err := s.Dial(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if err := Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
		t.Errorf("the way out: %v", err)
	}
}

func TestAHomeThatCannotBeWrittenIsNamed(t *testing.T) {
	s, home := place(t, "")
	disktest.Put(t, filepath.Join(home, ".state"), "", 0o600) // holds also for root
	_, err := s.Ensure(t.Context(), home)
	if p := problem.Of(err); p.Kind != problem.Unavailable || !strings.Contains(p.Text, home) || p.Next == "" {
		t.Errorf("got %+v", p)
	}
}

func TestTheHomeFollowsFlagThenEnvironmentThenUser(t *testing.T) {
	cwd := real(t.TempDir())
	t.Chdir(cwd)
	link := filepath.Join(cwd, "link")
	if err := os.Symlink(cwd, link); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		uid  int
		flag string
		env  map[string]string
		want string
	}{
		"flag":            {1, "/nowhere/a", map[string]string{"SALLYPORT_HOME": "/nowhere/b"}, "/nowhere/a"},
		"relative flag":   {1, "x", nil, filepath.Join(cwd, "x")},
		"environment":     {1, "", map[string]string{"SALLYPORT_HOME": "/nowhere/b", "XDG_STATE_HOME": "/nowhere/c"}, "/nowhere/b"},
		"state home":      {1, "", map[string]string{"XDG_STATE_HOME": "/nowhere/c", "HOME": "/nowhere/d"}, "/nowhere/c/sallyport"},
		"relative state":  {1, "", map[string]string{"XDG_STATE_HOME": "c", "HOME": "/nowhere/d"}, "/nowhere/d/.local/state/sallyport"},
		"user":            {1, "", map[string]string{"HOME": "/nowhere/d"}, "/nowhere/d/.local/state/sallyport"},
		"root":            {0, "", map[string]string{"HOME": "/root"}, "/var/lib/sallyport"},
		"through a link":  {1, filepath.Join(link, "new", "home"), nil, filepath.Join(cwd, "new", "home")},
		"two spellings":   {1, cwd + "//new/./x/../home", nil, filepath.Join(cwd, "new", "home")},
		"root with state": {0, "", map[string]string{"XDG_STATE_HOME": "/nowhere/c"}, "/nowhere/c/sallyport"},
	} {
		got, err := Person{UID: tc.uid, Getenv: func(k string) string { return tc.env[k] }}.Home(tc.flag)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q %v, want %q", name, got, err, tc.want)
		}
	}
	if _, err := (Person{UID: 1, Getenv: func(string) string { return "" }}).Home(""); problem.KindOf(err) != problem.Usage {
		t.Errorf("nothing known: %v", err)
	}
	for _, rel := range []string{"x", "./x", "~/x"} {
		_, err := (Person{UID: 0, Getenv: func(k string) string { return map[string]string{"SALLYPORT_HOME": rel}[k] }}).Home("")
		if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "SALLYPORT_HOME") || !strings.Contains(err.Error(), "absolute path") {
			t.Errorf("SALLYPORT_HOME=%s: %v", rel, err)
		}
	}
}

func TestTheSocketLiesWhereOnlyItsUserReaches(t *testing.T) {
	runtime, err := os.MkdirTemp("", "spc")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtime) // as above
	env := func(dir string) func(string) string {
		return func(k string) string {
			if k == "XDG_RUNTIME_DIR" {
				return dir
			}
			return ""
		}
	}
	me := os.Geteuid()
	path := func(p Person, home string) string {
		t.Helper()
		got, err := p.Socket(home)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := path(Person{me, env(runtime)}, "/h"); !strings.HasPrefix(got, runtime+"/sallyport/") || !strings.HasSuffix(got, "/daemon.sock") {
		t.Errorf("own runtime folder: %s", got)
	}
	if path(Person{me, env(runtime)}, "/h") == path(Person{me, env(runtime)}, "/i") {
		t.Error("two homes have one socket")
	}
	other := me + 1
	if got := path(Person{other, env(runtime)}, "/h"); !strings.HasPrefix(got, fmt.Sprintf("/tmp/sallyport-%d/", other)) {
		t.Errorf("another's runtime folder: %s", got)
	}
	if got := path(Person{0, env("")}, "/h"); !strings.HasPrefix(got, "/run/sallyport/") {
		t.Errorf("root: %s", got)
	}
	long := filepath.Join(runtime, strings.Repeat("x", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := (Person{me, env(long)}).Socket("/h"); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("a path the kernel does not take: %v", err)
	}
}

func TestADaemonThatWasStartedWithAnotherRuntimeFolderIsFound(t *testing.T) {
	s, home := place(t, "")
	c, err := s.Ensure(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	other, otherHome := place(t, "") // as from cron, or another login
	found, err := other.Dial(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if found.Socket() != c.Socket() {
		t.Errorf("found %s, not %s", found.Socket(), c.Socket())
	}
	if _, err := other.Dial(t.Context(), otherHome); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("the daemon of another home was found: %v", err)
	}
	if err := Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
		t.Error(err)
	}
}

func TestASocketInAFolderThatOthersMayWriteIsNotTrusted(t *testing.T) {
	s, home := place(t, "")
	path := socketOf(t, s, home)
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dial(t.Context(), home); problem.KindOf(err) != problem.Refused {
		t.Errorf("got %v", err)
	}
}

// listenAs listens at path as another user would, whoever owns the folder: what leads to it may have led elsewhere a moment ago.
func listenAs(t *testing.T, uid int, path string) net.Listener {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can listen as another user")
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close() // the listener has a descriptor of its own
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	same := ^uintptr(0)
	runtime.LockOSThread() // of this thread alone: as whom a socket was opened is who it was that began to listen
	defer runtime.UnlockOSThread()
	_, _, become := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same)
	failed := unix.Listen(fd, 5)
	_, _, back := unix.RawSyscall(unix.SYS_SETRESUID, same, 0, same)
	if become != 0 || failed != nil || back != 0 {
		t.Fatal(become, failed, back)
	}
	l, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestADaemonThatAnotherUserAnswersForIsNotTrusted(t *testing.T) {
	s, home := place(t, "")
	path := socketOf(t, s, home)
	l := listenAs(t, 65534, path)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the other user heard %s", r.URL)
		_ = json.NewEncoder(w).Encode(api.Daemon{Home: home, API: api.Version, Build: api.Build()})
	})}
	go server.Serve(l)
	defer server.Close()

	if _, err := s.Dial(t.Context(), home); problem.KindOf(err) != problem.Refused {
		t.Errorf("where ours would be: %v", err)
	}
	elsewhere, _ := place(t, "")
	if _, err := elsewhere.Dial(t.Context(), home); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("elsewhere: %v", err)
	}
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	stream := ": beat\n\nid: 1\nevent: state\ndata: {\"a\":\ndata:1}\n\nevent:end\ndata: {}\n\n"
	var got []string
	err := readEvents(strings.NewReader(stream), func(kind string, data []byte) error {
		got = append(got, kind+"="+string(data))
		if kind == "end" {
			return io.EOF
		}
		return nil
	})
	if !errors.Is(err, io.EOF) || len(got) != 2 || got[0] != "state={\"a\":\n1}" {
		t.Errorf("%q %v", got, err)
	}
	var cut *cutError
	if err := readEvents(strings.NewReader("event: state\ndata: {}\n"), func(string, []byte) error { return nil }); !errors.As(err, &cut) {
		t.Errorf("a stream that breaks off: %v", err)
	}
}

func TestADecisionIsSaidAgainToADaemonThatHadToBeStartedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		mood  string
		stop  bool // it is gone before it hears anything
		heard int
	}{
		"gone before":            {"", true, 1},
		"gone without a word":    {"dies once", false, 2},
		"it goes away each time": {"dies", false, 2},
	} {
		s, home := place(t, tc.mood)
		c, err := s.Ensure(t.Context(), home)
		if err != nil {
			t.Fatal(err)
		}
		if tc.stop {
			if err := Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil {
				t.Fatal(err)
			}
			waitEnd(c.pid, 3*time.Minute)
		}
		_, err = Call(t.Context(), c, api.ApprovalApprove, api.Approve{Of: "apr-00000001", Digest: "d1"})
		heard, _ := os.ReadFile(filepath.Join(home, "heard"))
		if n := strings.Count(string(heard), `apr-00000001 {"digest":"d1"}`); n != tc.heard {
			t.Errorf("%s: heard %d times: %s", name, n, heard)
		}
		if tc.mood == "dies" {
			if p := problem.Of(err); p.Next != "sallyport approve apr-00000001" || !strings.Contains(p.Text, "is not known") {
				t.Errorf("%s: %+v", name, p)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := Do(t.Context(), c, api.DaemonStop, api.Nothing{}); err != nil { // the client speaks to the new one from here on
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADecisionThatNobodyHeardIsSaidToBeNotRecorded(t *testing.T) {
	s, home := place(t, "")
	path, err := s.Socket(home)
	if err != nil {
		t.Fatal(err)
	}
	err = Do(t.Context(), New(path), api.ApprovalRefuse, api.Reason{Of: "apr-00000001", Reason: "no"})
	if p := problem.Of(err); !strings.Contains(p.Text, "was not recorded") || p.Next == "" {
		t.Errorf("got %+v", p)
	}
}

func TestNoDaemonIsStartedWhereOthersMadeTheSocketsFolderFirst(t *testing.T) {
	s, home := place(t, "")
	path, err := s.Socket(home)
	if err != nil {
		t.Fatal(err)
	}
	squat := filepath.Dir(filepath.Dir(path))
	if err := os.Mkdir(squat, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(squat, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context(), home); problem.KindOf(err) != problem.Refused || !strings.Contains(err.Error(), squat) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(LogPath(home)); err == nil {
		t.Error("a daemon was started")
	}
}

// What changes something may have been heard by the daemon that went away; only a decision says that it may be said twice.
func TestWhatOnlyReadsAndADecisionAreAskedOfADaemonStartedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		ask  func(ctx context.Context, c *Client) error
		want int
	}{
		"a list": {func(ctx context.Context, c *Client) error {
			_, err := Call(ctx, c, api.ChangeList, api.Filter{})
			return err
		}, 1},
		"a decision": {func(ctx context.Context, c *Client) error {
			return Do(ctx, c, api.ChangeConfirm, api.Confirm{Of: "chg-00000001"})
		}, 1},
		"a request": {func(ctx context.Context, c *Client) error {
			_, err := Call(ctx, c, api.ChangeRun, api.Run{})
			return err
		}, 0},
	} {
		c, starts := New(filepath.Join(t.TempDir(), "none")), 0
		c.restart = func(context.Context) error { starts++; return nil }
		if err := tc.ask(t.Context(), c); !errors.Is(err, ErrNoDaemon) || starts != tc.want {
			t.Errorf("%s: %d starts, %v", name, starts, err)
		}
	}
}

// TestADaemonIsStartedWithWhatItReadsAndNoKey holds that what a person sets reaches a daemon that a command starts.
func TestADaemonIsStartedWithWhatItReadsAndNoKey(t *testing.T) {
	is := map[string]string{"TZ": "Europe/Paris", "SALLYPORT_MAX_MESSAGES_PER_PROMPT": "7", "OPENAI_API_KEY": "sk-1", "GIT_DIR": "/x"}
	got := Person{Getenv: func(name string) string { return is[name] }}.DaemonEnvironment()
	slices.Sort(got)
	if want := []string{"SALLYPORT_MAX_MESSAGES_PER_PROMPT=7", "TZ=Europe/Paris"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
