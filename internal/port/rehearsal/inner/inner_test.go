package inner

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// TestThereIsNoSuchDriverOutside holds that nothing runs without a sandbox but in a rehearsal, whatever the environment says.
func TestThereIsNoSuchDriverOutside(t *testing.T) {
	t.Setenv(rehearsal.Variable, "1")
	for _, home := range []string{t.TempDir(), sandbox.Mountpoint} {
		if d, err := New(home, "/bin/true"); d != nil || problem.KindOf(err) != problem.Refused {
			t.Errorf("for %s there is %v, %v", home, d, err)
		}
	}
}

// A program of ours begins where a sandbox would show its folder, and in a home of its own.
func TestAProgramBeginsInTheFolderThatASandboxWouldShow(t *testing.T) {
	tree, work, home := t.TempDir(), t.TempDir(), t.TempDir()
	d := &Driver{self: script(t, `pwd; echo "$HOME"; cat; echo "$@"`)}
	var out bytes.Buffer
	p, err := d.Start(t.Context(), sandbox.Spec{
		ID: "x", Argv: []string{sandbox.SelfPath, "runner", "adapt"}, Dir: sandbox.Mountpoint + "/agent/deep", Env: os.Environ(), Home: home,
		Tree: sandbox.Tree{Dir: tree}, Own: []sandbox.Bind{{Source: filepath.Dir(mkdir(t, work, "deep")), Target: sandbox.Mountpoint + "/agent"}},
		Stdin: strings.NewReader("said\n"), Stdout: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait()
	if want := work + "/deep\n" + home + "\nsaid\nrunner adapt\n"; err != nil || exit.Code != 0 || out.String() != want {
		t.Errorf("%+v, %v: %q, not %q", exit, err, out.String(), want)
	}
}

func TestOnlyOurOwnProgramRuns(t *testing.T) {
	if _, err := (&Driver{self: "/bin/true"}).Start(t.Context(), sandbox.Spec{ID: "x", Argv: []string{"/bin/sh", "-c", "true"}}); problem.KindOf(err) != problem.Unavailable {
		t.Errorf("it began: %v", err)
	}
}

// What is to end ends with all that it started.
func TestAProgramIsEndedWithWhatItStarted(t *testing.T) {
	for name, end := range map[string]func(p sandbox.Process, cancel func()){
		"killed":    func(p sandbox.Process, _ func()) { p.Kill() },
		"cancelled": func(_ sandbox.Process, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			d := &Driver{self: script(t, "sleep 1000 & sleep 1000")}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out bytes.Buffer // until it is closed by all that have it Wait does not return
			p, err := d.Start(ctx, sandbox.Spec{ID: "x", Argv: []string{sandbox.SelfPath}, Dir: sandbox.Mountpoint, Tree: sandbox.Tree{Dir: t.TempDir()}, Env: os.Environ(), Stdout: &out})
			if err != nil {
				t.Fatal(err)
			}
			end(p, cancel)
			if exit, err := p.Wait(); err != nil || exit.Signal != "SIGKILL" {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
	d := &Driver{self: script(t, "sleep 1000")}
	p, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Argv: []string{sandbox.SelfPath}, Tree: sandbox.Tree{Dir: t.TempDir()}, Env: os.Environ(), Limits: sandbox.Limits{Timeout: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Limit == nil || exit.Limit.Name != sandbox.Time {
		t.Errorf("%+v, %v", exit, err)
	}
}

// What a program leaves behind goes with it: no session of a rehearsal hangs on it.
func TestWhatAProgramLeavesBehindGoes(t *testing.T) {
	dir := t.TempDir()
	d := &Driver{self: script(t, "sleep 1000 & echo $! >left; exit 3")}
	var out bytes.Buffer
	p, err := d.Start(t.Context(), sandbox.Spec{ID: "x", Argv: []string{sandbox.SelfPath}, Tree: sandbox.Tree{Dir: dir}, Env: os.Environ(), Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "left"))
	if err != nil {
		t.Fatal(err)
	}
	left := strings.TrimSpace(string(raw))
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile("/proc/" + left + "/stat")
		if err != nil || strings.Contains(string(status), ") Z ") { // nobody may have waited for it
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %s is still there: %s", left, status)
		}
	}
}

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sallyport")
	disktest.Put(t, path, "#!/bin/sh\n"+text+"\n", 0o755)
	return path
}

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
