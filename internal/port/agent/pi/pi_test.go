package pi_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/pi"
)

// task is for somebody who has a program of this name in PATH.
func task(t *testing.T) agent.Task {
	bin := t.TempDir()
	disktest.Put(t, filepath.Join(bin, "pi"), "#!/bin/sh\n", 0o755)
	return agent.Task{Agent: "pi", Text: "do it", Home: t.TempDir(), Top: t.TempDir(), Path: bin + ":/usr/bin:/bin"}
}

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	agenttest.Run(t, pi.New(), task(t))
}

func TestTheHomesArgumentsComeAfterWhatIsClosed(t *testing.T) {
	want := task(t)
	want.Settings = agent.Settings{Args: []string{"--thinking", "low"}, Env: []string{"A=b"}, Wire: agent.Chat, Model: "m"}
	p, err := pi.New().Program(want)
	if err != nil {
		t.Fatal(err)
	}
	var o agent.Order
	if err := json.Unmarshal(p.Stdin, &o); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(o.Argv[0], "/pi") || strings.Join(o.Argv[1:3], " ") != "--mode rpc" || strings.Join(o.Argv[len(o.Argv)-2:], " ") != "--thinking low" {
		t.Errorf("%q", o.Argv)
	}
	for _, flag := range []string{"--offline", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--system-prompt"} {
		if !slices.Contains(o.Argv, flag) {
			t.Errorf("%s is not in %q", flag, o.Argv)
		}
	}
	if o.Engine != pi.Name || o.Wire != agent.Chat || o.Base != agent.ModelBase || !slices.Contains(o.Env, "A=b") || !p.Turns || !p.Keeps || !p.Messages {
		t.Errorf("%+v %+v", o, p)
	}
}

func TestAPiThatIsNotHereIsSaidWithHowToGetIt(t *testing.T) {
	none := task(t)
	none.Path = "/nowhere"
	_, err := pi.New().Program(none)
	if problem.KindOf(err) != problem.NotFound || !strings.Contains(problem.Of(err).Next, "npm install") {
		t.Errorf("%v", err)
	}
	other := task(t)
	other.Agent = "codex"
	if _, err := pi.New().Program(other); problem.KindOf(err) != problem.Usage {
		t.Errorf("%v", err)
	}
}
