package codex_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/codex"
)

// task is of a person who has a codex.
func task(t *testing.T) agent.Task {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "tool", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	disktest.Put(t, filepath.Join(bin, "codex"), "#!/bin/sh\n", 0o755)
	return agent.Task{Agent: "codex", Text: "do it", Home: t.TempDir(), Top: t.TempDir(), Path: bin + ":/usr/bin:/bin"}
}

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	agenttest.Run(t, codex.New(), task(t))
}

func TestCodexIsStartedWithItsEventsAndWhatTheHomeAdds(t *testing.T) {
	want := task(t)
	want.Settings = agent.Settings{Model: "m", Args: []string{"-c", "model_reasoning_effort=high"}, Env: []string{"A=b"}}
	p, err := codex.New().Program(want)
	if err != nil {
		t.Fatal(err)
	}
	var o agent.Order
	if err := json.Unmarshal(p.Stdin, &o); err != nil {
		t.Fatal(err)
	}
	bin, _, _ := strings.Cut(want.Path, ":")
	if !slices.Equal(o.Argv, []string{filepath.Join(bin, "codex"), "exec", "--json", "-c", "model_reasoning_effort=high"}) {
		t.Errorf("it is started by %q", o.Argv)
	}
	if o.Engine != "codex" || o.Model != "m" || o.Base != agent.ModelBase || o.Wire != agent.Responses || !slices.Equal(o.Env, []string{"A=b"}) {
		t.Errorf("it is ordered %+v", o)
	}
	if !p.Turns || !p.Keeps || !p.Messages || p.Model == nil || len(p.Binds) != 1 || p.Binds[0].Source != filepath.Dir(bin) {
		t.Errorf("%+v", p)
	}
}

func TestAWireThatCodexDoesNotSpeakIsRefused(t *testing.T) {
	want := task(t)
	want.Settings = agent.Settings{Wire: agent.Chat, Base: "http://127.0.0.1:11434/v1"}
	_, err := codex.New().Program(want)
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "in sallyport.yaml") {
		t.Errorf("%v", err)
	}
	want.Settings.Wire = agent.Responses
	if p, err := codex.New().Program(want); err != nil || !p.Model.Keyless {
		t.Errorf("%+v, %v", p.Model, err)
	}
}

func TestACodexThatIsNotThereIsGot(t *testing.T) {
	want := task(t)
	want.Path = t.TempDir()
	_, err := codex.New().Program(want)
	if problem.KindOf(err) != problem.NotFound || problem.Of(err).Next != "npm install -g @openai/codex" || !strings.HasSuffix(problem.Of(err).Text, "no folder of PATH has codex") {
		t.Errorf("%v", err)
	}
	want.Chat = true // nobody's shell is there
	_, err = codex.New().Program(want)
	if problem.Of(err).Next != "sallyport doctor" || !strings.HasSuffix(problem.Of(err).Text, "no folder of the PATH that the daemon was started with has codex") {
		t.Errorf("in a conversation: %v", err)
	}
}
