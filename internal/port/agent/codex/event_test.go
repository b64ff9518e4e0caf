package codex

import (
	"strings"
	"testing"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
)

// What codex writes may be anything: nothing of it is an error of the reader, and what it comes to is bounded.
func FuzzAnyOutputIsTaken(f *testing.F) {
	for _, seed := range []string{
		`{"type":"thread.started","thread_id":"01a1"}`, `{"type":"thread.started","thread_id":"--last"}`, `{"type":"turn.failed","error":{"message":"x"}}`,
		`{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a","kind":"delete"}]}}`, `{"type":"item.completed","item":[1]}`,
		`{"type":"item.updated","item":{"type":"todo_list","items":[{"text":"a"}]}}`, `{"type":"item.started","item":{"type":"command_execution","command":"/bin/bash -lc 'a"}}`,
		"\x00\xff", strings.Repeat(`{"item":`, 20000), `{"type":"error","message":"` + strings.Repeat("\u202e", 5000) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r := &report{show: &agenttest.Shown{}, begun: func(thread string) {
			if !proper(thread) || strings.HasPrefix(thread, "-") || strings.ContainsAny(thread, "/ .*?[\x00") {
				t.Errorf("a thread is called %q", thread)
			}
		}}
		e, err := parse(line)
		if err != nil && e.Type != "" {
			t.Errorf("%v, and yet it is %q", err, e.Type)
		}
		for range 2 {
			r.take(e)
		}
		if len(r.says) > agent.SaysBytesMax+8 || strings.ContainsAny(r.failed+r.trouble, "\n\x1b\x00") || r.completed && r.failed != "" || strings.Contains(explain(r.failed), "\n") {
			t.Errorf("%d bytes; %q, %q", len(r.says), r.failed, r.trouble)
		}
	})
}

func TestOfManyStrangeThingsSomeAreTold(t *testing.T) {
	show := &agenttest.Shown{}
	r := &report{show: show}
	for i := range 1000 {
		r.take(event{Type: strings.Repeat("x", i+1)})
	}
	if n := strings.Count(show.String(), "sallyport does not know"); n != oddMax {
		t.Errorf("%d notes", n)
	}
}

func TestACommandIsShownWithoutItsShell(t *testing.T) {
	for line, want := range map[string]string{
		"/bin/bash -lc 'go test ./...'": "go test ./...", `bash -lc "a 'b'"`: "a 'b'", "/bin/sh -lc 'x y'": "x y", "fish -c 'x'": "fish -c 'x'", "/bin/bash -lc ls": "ls", "/bin/bash -lc 'a": "'a", "ls -l": "ls -l", "": "",
		`/bin/bash -lc 'a'"'"'b'`: "a'b", "/bin/bash -lc 'a' b": "'a' b",
	} {
		if got := command(line); got != want {
			t.Errorf("%q is shown as %q, not %q", line, got, want)
		}
	}
}

func TestAToolOfCodexIsSeenToBeginAndToEnd(t *testing.T) {
	show := &agenttest.Shown{}
	r := &report{show: show}
	for _, line := range []string{
		`{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"/bin/bash -lc 'sleep 9'","status":"in_progress"}}`,
		`{"type":"item.started","item":{"id":"i2","type":"mcp_tool_call","server":"sallyport","tool":"send_message","status":"in_progress"}}`,
		`{"type":"item.completed","item":{"id":"i2","type":"mcp_tool_call","server":"sallyport","tool":"send_message","status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"sleep 9","exit_code":1,"status":"failed"}}`,
	} {
		e, err := parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		r.take(e)
	}
	if got := show.String(); !strings.HasPrefix(got, "\n[execute] sleep 9\n\n[other] sallyport send_message\n") || show.Ends() != "i2, failed false\ni1, failed true" {
		t.Errorf("%q, %q", got, show.Ends())
	}
}
