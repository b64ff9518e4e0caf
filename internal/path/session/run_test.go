package session_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/base/disk"
	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/port/sandbox/sandboxtest"
)

func running(t *testing.T, play func(context.Context, sandbox.Spec) sandbox.Exit) session.Running {
	t.Helper()
	return session.Running{
		Session: session.Session{ID: "sh-abc12", Agent: "command", Attempt: 1, Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
			Dir: filepath.Join(t.TempDir(), "sessions", "sh-abc12")},
		Driver:  &sandboxtest.Fake{Play: play},
		Spec:    sandbox.Spec{Env: []string{"PATH=/usr/bin", "HOME=/home/agent"}, Dir: "/workspace/sub"},
		Program: agent.Program{Name: "sh", Argv: []string{"/bin/sh", "-c", "x"}, Dirs: []string{"/opt/tool/bin"}, Env: []string{"EXTRA=1"}, Stdin: []byte("in")},
		Cwd:     "/people/ann/repo/sub",
	}
}

// lines reads a transcript; every line of it must be one JSON object.
func lines(t *testing.T, dir string) []session.Line {
	t.Helper()
	f, err := session.OpenTranscript(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []session.Line
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l session.Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		if l.At.IsZero() {
			t.Errorf("%q has no time", s.Text())
		}
		out = append(out, l)
	}
	return out
}

func texts(all []session.Line, stream string) (out []string) {
	for _, l := range all {
		if l.Stream == stream {
			out = append(out, l.Text)
		}
	}
	return out
}

func TestTheTranscriptHoldsEveryLineWhole(t *testing.T) {
	long := strings.Repeat("ä", session.LineBytesMax) // two bytes each: the cut must not fall into one
	r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit {
		in, _ := io.ReadAll(spec.Stdin)
		fmt.Fprintf(spec.Stdout, "in: %s\nhalf", in)
		io.WriteString(spec.Stderr, "warn\r\n\n")
		io.WriteString(spec.Stdout, " and half\n\x1b[31m<&>\xff\xfe\n"+long+"\nlast without end")
		return sandbox.Exit{Code: 3}
	})
	var live []session.Line
	r.Output = func(l session.Line) { live = append(live, l) }
	exit, err := session.Run(t.Context(), r)
	if err != nil || exit.Code != 3 {
		t.Fatalf("%+v, %v", exit, err)
	}
	all := lines(t, r.Session.Dir)
	want := []string{"in: in", "half and half", "\x1b[31m<&>\uFFFD", long[:session.LineBytesMax], long[session.LineBytesMax:], "last without end"}
	if got := texts(all, "stdout"); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("stdout %.300q, want %.300q", got, want)
	}
	if got := texts(all, "stderr"); fmt.Sprintf("%q", got) != `["warn" ""]` {
		t.Errorf("stderr %q", got)
	}
	if got := texts(all, "event"); len(got) != 2 || got[1] != "it ended with status 3" {
		t.Errorf("events %q", got)
	}
	if len(live) != len(all) {
		t.Errorf("%d lines were seen live, %d are written", len(live), len(all))
	}
}

func TestWhatIsLeftOnDiskIsForItsOwnerOnly(t *testing.T) {
	r := running(t, nil)
	if _, err := session.Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{".": 0o700 | os.ModeDir, "metadata.json": 0o600, "transcript.jsonl": 0o600} {
		info, err := os.Stat(filepath.Join(r.Session.Dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	setup := session.SetupDir(t.TempDir(), "chg-00000001")
	if err := session.KeepTranscript(disk.Ops{}, setup, "printed\n", "it failed"); err != nil {
		t.Fatal(err)
	}
	disktest.Private(t, filepath.Dir(setup), "setup/transcript.jsonl")
	raw, err := os.ReadFile(filepath.Join(r.Session.Dir, "metadata.json"))
	if err != nil {
		t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(raw, &meta); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"agent_name": "command", "cwd": "/people/ann/repo/sub", "copy_cwd": "/workspace/sub", "started_at": "2026-03-04T05:06:07Z"}
	if fmt.Sprint(meta) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", meta, want)
	}
}

func TestTheProgramGetsItsPlaceAndNothingOfThePerson(t *testing.T) {
	t.Setenv("SECRET", "planted")
	var got sandbox.Spec
	r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit { got = spec; return sandbox.Exit{} })
	r.Program.Binds = []sandbox.Bind{{Source: "/opt/tool", Target: "/opt/tool"}}
	if _, err := session.Run(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got.ID != "sh-abc12" || got.Dir != "/workspace/sub" || len(got.Binds) != 1 || fmt.Sprint(got.Argv) != "[/bin/sh -c x]" {
		t.Errorf("%+v", got)
	}
	if env := fmt.Sprint(got.Env); env != "[HOME=/home/agent EXTRA=1 PATH=/opt/tool/bin:/usr/bin]" {
		t.Errorf("env %s", env)
	}
}

func TestASessionThatIsCancelledIsKilledAndSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := running(t, func(ctx context.Context, spec sandbox.Spec) sandbox.Exit {
		io.WriteString(spec.Stdout, "working\n")
		<-ctx.Done()
		return sandbox.Exit{}
	})
	r.Live = func(sandbox.Process) { cancel() }
	exit, err := session.Run(ctx, r)
	if err != nil || exit.Signal != "SIGKILL" {
		t.Errorf("%+v, %v", exit, err)
	}
	if got := texts(lines(t, r.Session.Dir), "event"); got[len(got)-1] != "it was ended by SIGKILL" {
		t.Errorf("%q", got)
	}
}

func TestAStartThatFailsKeepsItsKindAndIsInTheTranscript(t *testing.T) {
	r := running(t, nil)
	r.Driver = &sandboxtest.Fake{Refuse: problem.Errorf(problem.Unavailable, "sallyport doctor", "no namespaces")}
	_, err := session.Run(t.Context(), r)
	if p := problem.Of(err); p.Kind != problem.Unavailable || p.Next != "sallyport doctor" {
		t.Errorf("%+v", p)
	}
	if got := texts(lines(t, r.Session.Dir), "event"); !strings.Contains(got[len(got)-1], "no namespaces") {
		t.Errorf("%q", got)
	}
}

func TestADiskThatIsFullEndsTheSessionWithAnError(t *testing.T) {
	full := errors.New("no space left on device")
	for _, op := range []string{"session:make", "session:describe", "session:commit", "transcript:open", "transcript:append"} {
		r := running(t, func(ctx context.Context, spec sandbox.Spec) sandbox.Exit {
			io.WriteString(spec.Stdout, "working\n")
			<-ctx.Done() // an agent that would go on for ever
			return sandbox.Exit{}
		})
		r.Ops = disk.Ops{Around: func(name string, do func() error) error {
			if name == op {
				return full
			}
			return do()
		}}
		if _, err := session.Run(t.Context(), r); !errors.Is(err, full) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestTheLastWordsAreFewAndTheAgentsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // what comes by two streams at almost one time may come in either order
		r := running(t, func(_ context.Context, spec sandbox.Spec) sandbox.Exit {
			for i := range 5000 {
				fmt.Fprintf(spec.Stdout, "line %d %s\n", i, strings.Repeat("x", 60))
			}
			io.WriteString(spec.Stderr, "\n  \nwarning\n")
			return sandbox.Exit{}
		})
		if _, err := session.Run(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		words, err := session.LastWords(r.Session.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Split(words, "\n")
		if len(got) != 10 || !strings.HasPrefix(got[0], "line 4991 ") || got[9] != "warning" {
			t.Errorf("%q", got)
		}
	})
}

func TestHalfALineOfACrashedDaemonIsNoObstacle(t *testing.T) {
	dir := t.TempDir()
	if words, err := session.LastWords(dir); words != "" || err != nil {
		t.Errorf("%q, %v", words, err)
	}
	text := `{"at":"2026-01-01T00:00:00Z","stream":"stdout","text":"whole"}` + "\n" + `{"at":"2026-01-01T00:00:00Z","str`
	disktest.Put(t, filepath.Join(dir, "transcript.jsonl"), text, 0o600)
	if words, err := session.LastWords(dir); words != "whole" || err != nil {
		t.Errorf("%q, %v", words, err)
	}
	huge := `{"at":"2026-01-01T00:00:00Z","stream":"stdout","text":"` + strings.Repeat("ü", 8000) + `"}` + "\n"
	disktest.Put(t, filepath.Join(dir, "transcript.jsonl"), huge, 0o600)
	if words, err := session.LastWords(dir); len(words) > 2<<10 || len(words) < 2000 || strings.Trim(words, "ü") != "" || err != nil {
		t.Errorf("%d bytes, %v", len(words), err)
	}
	f, err := session.OpenTranscript(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(f); len(raw) != 0 || err != nil {
		t.Errorf("%q, %v", raw, err)
	}
}

func TestEveryEndIsOneSentenceThatNamesIt(t *testing.T) {
	for want, exit := range map[string]sandbox.Exit{
		"it ended with status 0":  {},
		"it ended with status 7":  {Code: 7},
		"it was ended by SIGSEGV": {Code: -1, Signal: "SIGSEGV"},
		"it was ended at its limit of time: 1h0m0s (observed: 1h0m0.2s); what raises it: --timeout, or `limits: timeout:` in sallyport.yaml": {
			Code: -1, Signal: "SIGKILL", Limit: &sandbox.Limit{Name: "time", Value: "1h0m0s", Observed: "1h0m0.2s"}},
	} {
		if got := session.Describe(exit); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheEnvironmentIsMadeNotInherited(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "planted")
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	top, data := filepath.Join(root, "home", "ann", "repo"), filepath.Join(root, "data")
	for _, dir := range []string{top, filepath.Join(data, "bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	disktest.Put(t, filepath.Join(top, "requirements.txt"), "", 0o644)
	spec, err := session.Environment(t.Context(), session.Surroundings{
		Owner: sandbox.Owner{UID: 1, GID: 2}, Home: filepath.Dir(top), Top: top, Shares: []string{data}, Profiles: []string{"go", "go"},
		Path: filepath.Join(data, "bin") + ":" + root + "/home/ann/bin:/usr/games:relative:/usr/bin",
	})
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, e := range spec.Env {
		name, value, _ := strings.Cut(e, "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		env[name] = value
	}
	for name, want := range map[string]string{
		"HOME": "/home/agent", "TERM": "dumb", "LANG": "C.UTF-8", "GOPROXY": "off", "PIP_NO_INDEX": "1", "AWS_SECRET_ACCESS_KEY": "",
		"PATH": filepath.Join(data, "bin") + ":/usr/games:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
	} {
		if env[name] != want {
			t.Errorf("%s=%q, want %q", name, env[name], want)
		}
	}
	if _, err := session.Environment(t.Context(), session.Surroundings{Home: filepath.Dir(top), Shares: []string{"/"}}); problem.KindOf(err) != problem.Refused {
		t.Error(err)
	}
}

// What a setup fetches into a cache of its home folder is found by agent and checks: the caches of all three are the one folder that is kept.
func TestToolsKeepWhatASetupFetchesAmongTheCaches(t *testing.T) {
	for name, in := range map[string]session.Surroundings{"no caches": {SetUp: true}, "no setup": {Caches: true}, "both": {Caches: true, SetUp: true}, "with a profile": {Caches: true, SetUp: true, Profiles: []string{"go"}}} {
		in.Path = "/usr/bin"
		spec, err := session.Environment(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"XDG_CACHE_HOME=/var/cache/agent", "CARGO_HOME=/var/cache/agent/cargo", "GOMODCACHE=/var/cache/agent/go-mod", "MAVEN_OPTS=-Dmaven.repo.local=/var/cache/agent/m2"} {
			if has := slices.Contains(spec.Env, want); has != (in.Caches && in.SetUp) {
				t.Errorf("%s: %s: %v", name, want, has)
			}
		}
	}
}
