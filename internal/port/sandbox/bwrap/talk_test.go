package bwrap_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/internal/path/session"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/command"
	"sallyport/internal/port/agent/replay"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/policy"
)

// conversation is a session in a real sandbox that is spoken with.
type conversation struct {
	*session.Talk
	process sandbox.Process
	lines   chan string // everything it writes
	over    chan error
	exit    *sandbox.Exit // once over has its value
}

// speak starts a program; its talk waits as long as a busy machine may need.
func (w workbench) speak(t *testing.T, p agent.Program) conversation {
	t.Helper()
	spec, err := session.Environment(t.Context(), session.Surroundings{
		Owner: owner(), Limits: sandbox.Limits{Timeout: 3 * time.Minute}, Path: w.task.Path, Home: w.task.Home, Top: w.task.Top,
	})
	if err != nil {
		t.Fatal(err)
	}
	spec.Tree = w.tree
	c := conversation{Talk: session.NewTalk(), lines: make(chan string, 1000), over: make(chan error, 1), exit: &sandbox.Exit{}}
	c.AnswerWithin, c.PauseWithin = 3*time.Minute, 3*time.Minute
	live := make(chan sandbox.Process, 1)
	go func() {
		exit, err := session.Run(t.Context(), session.Running{
			Session: session.Session{ID: "talk-abcde", Agent: "command", Started: time.Now(), Dir: filepath.Join(w.dir, "session")},
			Driver:  w.driver, Spec: spec, Program: p, Cwd: w.task.Top, Talk: c.Talk,
			Output: func(l session.Line) { c.lines <- l.Text },
			Live:   func(p sandbox.Process) { live <- p },
		})
		*c.exit = exit
		close(c.lines)
		c.over <- err
	}()
	select {
	case c.process = <-live:
	case err := <-c.over:
		t.Fatal(err)
	}
	t.Cleanup(c.process.Kill)
	return c
}

// until waits for a line that holds text, and fails if the program ends before.
func (c conversation) until(t *testing.T, text string) {
	t.Helper()
	var seen []string
	for line := range c.lines {
		if seen = append(seen, line); strings.Contains(line, text) {
			return
		}
	}
	t.Fatalf("it never wrote %q, but %q", text, seen)
}

// end waits for the end, which is to be a good one, and returns what was written until then.
func (c conversation) end(t *testing.T) (rest []string) {
	t.Helper()
	for line := range c.lines {
		rest = append(rest, line)
	}
	if err := <-c.over; err != nil || c.exit.Code != 0 {
		t.Errorf("%s, %v: %q", session.Describe(*c.exit), err, rest)
	}
	return rest
}

func TestAnAgentInTheSandboxIsToldAndMendsItsWork(t *testing.T) {
	w := newWorkbench(t, map[string]string{"file": "base\n"})
	p, err := replay.New().Program(agent.Task{Script: []byte(`
steps:
  - write: {path: file, content: bad}
  - say: written
  - {await: checkpoint_violation, timeout: 2m}
  - write: {path: file, content: good}
  - {await: tell, timeout: 2m}
  - run: grep -q good file
    expect: pass
`)})
	if err != nil {
		t.Fatal(err)
	}
	c := w.speak(t, p)
	c.until(t, "written")
	if a := c.Pause(t.Context(), "chk-1"); !a.Acknowledged {
		t.Errorf("%+v", a)
	}
	v := session.Violated{
		Severity: policy.Error, CheckpointID: "chk-1", FilesChanged: []string{"file"}, RequiresAck: true,
		Violations: []policy.Violation{{File: "file", Constraint: "forbidden_area", Message: "not this", Severity: policy.Error}},
	}
	// It said that it stands still: neither is it answered, nor does it go on.
	v.RequiresAck = false
	if d := c.Violated(t.Context(), v); d != (session.Delivery{Delivered: true}) {
		t.Errorf("%+v", d)
	}
	if raw, err := os.ReadFile(filepath.Join(w.tree.Dir, "file")); err != nil || string(raw) != "bad" {
		t.Errorf("%q, %v", raw, err)
	}
	c.Resume("chk-1")
	v.RequiresAck = true
	if d := c.Violated(t.Context(), v); !d.Acknowledged || d.AgentResponse == "" {
		t.Errorf("%+v", d)
	}
	c.until(t, "write file")
	if d := c.Tell(t.Context(), "well done"); !d.Acknowledged {
		t.Errorf("%+v", d)
	}
	if rest := c.end(t); !slices.Contains(rest, `told: "well done"`) {
		t.Errorf("%q", rest)
	}
	if raw, err := os.ReadFile(filepath.Join(w.tree.Dir, "file")); err != nil || string(raw) != "good" {
		t.Errorf("%q, %v", raw, err)
	}
}

func TestAFrozenAgentHoldsNobodyUpAndReadsOnceItRuns(t *testing.T) {
	w := newWorkbench(t, nil)
	w.task.Argv = []string{"sh", "-c", `echo ready; while read -r line; do case "$line" in
*'"text":"end"'*) exit 0 ;;
*checkpoint_violation*) echo '{"type":"violation_ack","checkpoint_id":"chk-1","understood":true,"corrective_action":"thawed"}' ;;
esac; done`}
	w.task.Messages = true
	p, err := command.New().Program(w.task)
	if err != nil {
		t.Fatal(err)
	}
	c := w.speak(t, p)
	c.until(t, "ready")
	if err := c.process.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.AnswerWithin, c.PauseWithin, c.Retries = 3*time.Second, 200*time.Millisecond, 0
	v := session.Violated{CheckpointID: "chk-1", Severity: policy.Error, RequiresAck: true}
	if d := c.Violated(t.Context(), v); d != (session.Delivery{Delivered: true}) {
		t.Errorf("its pipe has room: %+v", d)
	}
	c.AnswerWithin = 200 * time.Millisecond
	for i := 0; c.Tell(t.Context(), strings.Repeat("x", 32<<10)).Delivered; i++ {
		if i > 10 {
			t.Fatal("a pipe without a bottom")
		}
	}
	if a := c.Pause(t.Context(), "chk-1"); a.Acknowledged || !a.Timeout {
		t.Errorf("%+v", a)
	}
	if err := c.process.Thaw(); err != nil {
		t.Fatal(err)
	}
	c.AnswerWithin = 3 * time.Minute
	if d := c.Violated(t.Context(), v); !d.Acknowledged || d.AgentResponse != "thawed" {
		t.Errorf("%+v", d)
	}
	c.Tell(t.Context(), "end")
	c.end(t)
}
