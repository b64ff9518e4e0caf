package session_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/path/session"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/secret"
)

// child starts a session whose program is a real shell script in a folder of its own.
func child(t *testing.T, script string) (s spoken, folder string) {
	t.Helper()
	folder = t.TempDir()
	r := running(t, func(ctx context.Context, spec sandbox.Spec) sandbox.Exit {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
		cmd.Dir, cmd.Stdout, cmd.Stderr = folder, spec.Stdout, spec.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Error(err)
			return sandbox.Exit{Code: -1}
		}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return sandbox.Exit{Code: -1}
		}
		go func() { _, _ = io.Copy(stdin, spec.Stdin); stdin.Close() }()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program: %v", err)
		}
		return sandbox.Exit{Code: cmd.ProcessState.ExitCode()}
	})
	r.Program.Stdin, r.Program.Messages, r.Talk = nil, true, session.NewTalk()
	r.Talk.AnswerWithin, r.Talk.PauseWithin = 300*time.Millisecond, 300*time.Millisecond
	s = spoken{r.Talk, r.Session.Dir, make(chan error, 1)}
	ready := make(chan struct{})
	r.Output = func(l session.Line) {
		if l.Text == "ready" {
			close(ready)
		}
	}
	go func() {
		_, err := session.Run(t.Context(), r)
		s.ended <- err
	}()
	select {
	case <-ready:
	case <-time.After(3 * time.Minute):
		t.Fatal("the program never said that it is ready")
	}
	return s, folder
}

// patient gives a talk the time that a busy machine may take.
func (s spoken) patient() spoken {
	s.AnswerWithin, s.PauseWithin = 3*time.Minute, 3*time.Minute
	return s
}

func TestAProgramMendsItsWorkOnceItIsToldTo(t *testing.T) {
	s, folder := child(t, `echo bad > work; echo ready
while read -r line; do
  case "$line" in *'"type":"checkpoint_violation"'*forbidden_area*)
    echo good > work
    echo '{"type":"violation_ack","checkpoint_id":"chk-1","understood":true,"corrective_action":"mended"}'
    exit 0
  esac
done`)
	s = s.patient()
	work := func() string {
		raw, err := os.ReadFile(filepath.Join(folder, "work"))
		if err != nil {
			t.Error(err)
		}
		return string(raw)
	}
	if d := s.Tell(ended(t), "hurry"); d.Acknowledged || work() != "bad\n" {
		t.Errorf("before: %+v, %q", d, work())
	}
	if d := s.Violated(t.Context(), broken); d != (session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "mended"}) {
		t.Errorf("%+v", d)
	}
	s.over(t)
	if work() != "good\n" {
		t.Errorf("it holds %q", work())
	}
}

// ended is a context that is over: what is said is said, and nobody waits.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestAProgramThatSaysItIsPausedIsNotBelievedTwice(t *testing.T) {
	s, _ := child(t, `echo '{"type":"pause_ack","checkpoint_id":"chk-1","status":"paused","pending_operations":[]}'
echo ready
while read -r line; do
  echo '{"type":"pause_ack","checkpoint_id":"chk-1","status":"paused","pending_operations":[]}'
  echo '{"type":"pause_ack","checkpoint_id":"chk-1","status":"paused","pending_operations":[]}'
  case "$line" in *resume*) exit 0; esac
done`)
	if a := s.Pause(t.Context(), "chk-2"); a.Acknowledged || !a.Timeout {
		t.Errorf("the answer to another pause counts: %+v", a)
	}
	s = s.patient()
	if a := s.Pause(t.Context(), "chk-1"); !a.Acknowledged || a.Timeout || a.LatencyMS < 0 {
		t.Errorf("%+v", a)
	}
	s.Resume("chk-1")
	s.over(t)
}

func TestAProgramThatFillsItsPipeAndNeverReadsHoldsNobodyUp(t *testing.T) {
	s, folder := child(t, `echo ready; while ! test -e end; do sleep 0.02; done`)
	delivered := 0
	text := strings.Repeat("x", 8<<10)
	says := func(within time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return s.Tell(ctx, text).Delivered
	}
	for says(20*time.Millisecond) || says(time.Second) { // on a slow machine the second counts
		if delivered++; delivered == 30 { // a pipe holds 64 KiB
			t.Fatal("all was delivered to a program that reads nothing")
		}
	}
	if d := s.Violated(t.Context(), broken); d != (session.Delivery{}) {
		t.Errorf("%+v", d)
	}
	disktest.Put(t, filepath.Join(folder, "end"), "", 0o644)
	s.over(t)
}

func TestAProgramThatClosesItsStdinIsNotWaitedFor(t *testing.T) {
	s, folder := child(t, `exec 0<&-; echo ready; while ! test -e end; do sleep 0.02; done`)
	s = s.patient()
	began := time.Now()
	if d := s.Violated(t.Context(), broken); d != (session.Delivery{}) {
		t.Errorf("%+v", d)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	disktest.Put(t, filepath.Join(folder, "end"), "", 0o644)
	s.over(t)
}

func TestAFloodOfHalfAnAnswerCostsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: 25 MB of output, with -short")
	}
	s, _ := child(t, `echo ready; read -r line
printf '{"type":"violation_ack","checkpoint_id":"chk-1","understood":true,"corrective_action":"'
head -c 25000000 /dev/zero | tr '\0' x
printf '"}\n'
echo '{"type":"violation_ack","checkpoint_id":"chk-1","understood":true,"corrective_action":"small"}'`)
	s.AnswerWithin = time.Minute
	secret.Default()                                 // its rules are there once, whatever is printed
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // else the heap may double before anybody looks what of it is needed
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	peak := make(chan uint64)
	over := make(chan struct{})
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-over:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	if d := s.Violated(t.Context(), broken); d != (session.Delivery{Delivered: true, Acknowledged: true, AgentResponse: "small"}) {
		t.Errorf("%.200v", d)
	}
	s.over(t)
	close(over)
	if most := <-peak; most > before.HeapInuse+16<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before.HeapInuse>>20, most>>20)
	}
	all := lines(t, s.dir)
	if n := slices.IndexFunc(all, func(l session.Line) bool { return len(l.Text) > session.LineBytesMax }); n >= 0 || len(all) < 1500 {
		t.Errorf("%d lines, one of %d bytes", len(all), len(all[max(0, n)].Text))
	}
}
