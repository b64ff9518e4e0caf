package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/internal/port/rehearsal"
	"sallyport/internal/port/sandbox"
)

// played is a sandbox that prints and ends as a test says.
type played struct {
	sandbox.Driver
	sandbox.Process
	out, faults string
	exit        sandbox.Exit
	start, wait error
	ends        func()
}

func (p *played) Start(_ context.Context, spec sandbox.Spec) (sandbox.Process, error) {
	if p.start != nil {
		return nil, p.start
	}
	fmt.Fprint(spec.Stdout, p.out)
	fmt.Fprint(spec.Stderr, p.faults)
	return p, nil
}

func (p *played) Wait() (sandbox.Exit, error) {
	if p.ends != nil {
		p.ends()
	}
	return p.exit, p.wait
}

// TestARehearsersEndIsTheCandidatesFaultOrTheMachines holds SM-913: its agent hears of the first, and the second is tried again.
func TestARehearsersEndIsTheCandidatesFaultOrTheMachines(t *testing.T) {
	no, report := errors.New("no sandbox"), `{"done":[{"name":"start"}]}`
	for name, c := range map[string]struct {
		is    played
		fault string // of the machine
		fails string // of the candidate
	}{
		"it reports":               {is: played{out: report, faults: "chatter"}},
		"it reports a failure":     {is: played{out: `{"failed":{"step":"answer","why":"it is silent"}}`}, fails: "it is silent"},
		"it breaks a limit":        {is: played{out: report, faults: "panic", exit: sandbox.Exit{Code: -1, Signal: "SIGKILL", Limit: &sandbox.Limit{Name: "memory", Value: "1 GiB", Observed: "2 GiB"}}}, fails: "it broke the limit memory: 2 GiB, of 1 GiB"},
		"it breaks one with 0":     {is: played{out: report, exit: sandbox.Exit{Limit: &sandbox.Limit{Name: "disk"}}}, fails: "it broke the limit disk"},
		"it ends with a status":    {is: played{out: report, faults: "no room\n", exit: sandbox.Exit{Code: 3}}, fault: "the rehearser ended with 3 : no room"},
		"it is killed":             {is: played{out: report, exit: sandbox.Exit{Code: -1, Signal: "SIGKILL"}}, fault: "ended with -1 SIGKILL"},
		"it tells nothing":         {is: played{}, fault: "the rehearser has told nothing"},
		"it tells no report":       {is: played{out: "hello"}, fault: "the rehearser has told nothing"},
		"it tells too much":        {is: played{out: `{"done":[{"name":"` + strings.Repeat("x", printedMax) + `"}]}`}, fault: "the rehearser has told nothing"},
		"it does not start":        {is: played{start: no}, fault: "no sandbox"},
		"it cannot be waited for":  {is: played{out: report, wait: no}, fault: "no sandbox"},
		"the host ends meanwhile":  {is: played{out: report}, fault: "asked to stop"},
		"the host ends unwaited":   {is: played{wait: no}, fault: "no sandbox"},
		"the host ends and breaks": {is: played{exit: sandbox.Exit{Code: -1, Limit: &sandbox.Limit{}}}, fault: "asked to stop"},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		if strings.HasPrefix(name, "the host ends") {
			c.is.ends = func() { end(errors.New("asked to stop")) }
		}
		got, err := New(Parts{Sandbox: &c.is}).run(ctx, sandbox.Spec{})
		end(nil)
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
			continue
		}
		if (got.Failed == nil) != (c.fails == "") || got.Failed != nil && !strings.Contains(got.Failed.Why, c.fails) {
			t.Errorf("%s: %+v, want %q", name, got.Failed, c.fails)
		}
		if name == "it breaks a limit" && (got.Failed.Step != rehearsal.Start || got.Failed.Tail != "panic") {
			t.Errorf("%s: %+v", name, got.Failed)
		}
		if name == "it reports" && (len(got.Done) != 1 || got.Done[0].Name != rehearsal.Start) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
