package runner

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/internal/port/agent"
)

// host is the other end of a script that plays.
type host struct {
	to     *io.PipeWriter
	said   chan string // every line that the script prints
	status chan int
}

// listen plays steps in a goroutine of its own.
func listen(t *testing.T, steps ...agent.Step) host {
	t.Helper()
	t.Chdir(t.TempDir())
	in, to := io.Pipe()
	h := host{to: to, said: make(chan string, 100), status: make(chan int, 1)}
	go func() { h.status <- replay(in, h); in.Close() }()
	text, err := json.Marshal(agent.Script{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	h.send(string(text))
	return h
}

func (h host) Write(p []byte) (int, error) {
	h.said <- strings.TrimSuffix(string(p), "\n")
	return len(p), nil
}

func (h host) send(line string) { io.WriteString(h.to, line+"\n") }

func (h host) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, line := range want {
		if got := <-h.said; got != line {
			t.Errorf("it said %s, want %s", got, line)
		}
	}
}

const (
	violation  = `{"type":"checkpoint_violation","checkpoint_id":"chk-1","severity":"error","violations":[{"file":"a\nb","constraint":"forbidden_area","message":"no"}],"files_changed":[]}`
	understood = `{"checkpoint_id":"chk-1","corrective_action":"going on with the next step of the script","type":"violation_ack","understood":true}`
	told       = `told: "a\nb" breaks forbidden_area: "no"`
)

func TestAScriptGoesOnOnlyOnceItIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listen(t, agent.Step{Say: "waiting"}, agent.Step{Await: agent.AwaitViolation, Timeout: time.Minute}, agent.Step{Write: &agent.Write{Path: "f", Content: "good"}},
			agent.Step{Await: agent.AwaitTell}, agent.Step{Say: "end"})
		h.expect(t, "waiting")
		h.send(`{"type":"tell","id":"tell-1","text":"hurry\u001b"}`) // kept for the step that awaits it
		h.send(`{"type":"resume","checkpoint_id":"chk-0"}`)
		h.send(`{"type":"unknown"}`)
		h.send(`nonsense`)
		time.Sleep(59 * time.Second)
		if _, err := os.Stat("f"); err == nil || len(h.said) > 0 {
			t.Error("it did not wait")
		}
		h.send(violation)
		h.expect(t, understood, told, "write f", `{"id":"tell-1","type":"tell_ack"}`, `told: "hurry\x1b"`, "end")
		if status := <-h.status; status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

func TestAScriptThatIsToldNothingGivesUp(t *testing.T) {
	for name, row := range map[string]struct {
		step agent.Step
		do   func(host)
		want string
		took time.Duration
	}{
		"its own time":       {agent.Step{Await: agent.AwaitTell, Timeout: 3 * time.Second}, func(host) {}, "replay: step 1: await tell: no tell came within 3s", 3 * time.Second},
		"the usual time":     {agent.Step{Await: agent.AwaitViolation}, func(host) {}, "replay: step 1: await checkpoint_violation: no checkpoint_violation came within 1m0s", time.Minute},
		"only another thing": {agent.Step{Await: agent.AwaitTell}, func(h host) { h.send(violation) }, "replay: step 1: await tell: no tell came within 1m0s", time.Minute},
		"stdin has ended":    {agent.Step{Await: agent.AwaitTell}, func(h host) { h.to.Close() }, "replay: step 1: await tell: no more messages come: stdin has ended", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				h := listen(t, row.step)
				row.do(h)
				h.expect(t, row.want)
				if status := <-h.status; status != 1 || time.Since(began) != row.took {
					t.Errorf("status %d after %s", status, time.Since(began))
				}
				h.to.Close()
			})
		})
	}
}

func TestAViolationThatIsSentAgainIsAnsweredAgainAndMeantOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listen(t, agent.Step{Await: agent.AwaitViolation}, agent.Step{Await: agent.AwaitViolation})
		h.send(`{"type":"pause_request","checkpoint_id":"chk-0"}`)
		<-h.said
		h.send(violation)
		h.send(violation)
		h.send(`{"type":"resume","checkpoint_id":"chk-0"}`)
		h.expect(t, understood, told)
		h.send(violation)
		h.expect(t, understood)
		h.send(strings.ReplaceAll(violation, "chk-1", "chk-2"))
		h.expect(t, strings.ReplaceAll(understood, "chk-1", "chk-2"), told)
		if status := <-h.status; status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

func TestAScriptThatSaysItIsPausedStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listen(t, agent.Step{Await: agent.AwaitViolation}, agent.Step{Say: "on"})
		pause := func(n int) {
			h.send(fmt.Sprintf(`{"type":"pause_request","checkpoint_id":"chk-%d","reason":"checkpoint_validation","timeout_ms":10000}`, n))
			h.expect(t, fmt.Sprintf(`{"checkpoint_id":"chk-%d","pending_operations":[],"status":"paused","type":"pause_ack"}`, n))
		}
		resume := func(n int) { h.send(fmt.Sprintf(`{"type":"resume","checkpoint_id":"chk-%d"}`, n)) }
		pause(2)
		h.send(violation)
		pause(3)
		resume(4)
		resume(2)
		time.Sleep(time.Hour)
		if len(h.said) > 0 {
			t.Errorf("it went on: %s", <-h.said)
		}
		resume(3)
		h.expect(t, understood, told, "on")
		<-h.status
	})
}

func TestAScriptIsNotHeldByAPauseThatNobodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := listen(t, agent.Step{Await: agent.AwaitTell}, agent.Step{Say: "on"})
		h.send(`{"type":"pause_request","checkpoint_id":"chk-1"}`)
		<-h.said
		h.to.Close()
		h.expect(t, "replay: step 1: await tell: no more messages come: stdin has ended")
		if status := <-h.status; status != 1 {
			t.Errorf("status %d", status)
		}
	})
}
