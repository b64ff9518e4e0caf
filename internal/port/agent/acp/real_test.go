package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/acp"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/agenttest/modeltest"
)

// real are the agents that people use, each on a wire that it speaks.
var real = map[string]struct {
	wire          agent.Wire
	base          string // below the model's URL
	steers, loads bool
}{
	"gemini":    {wire: agent.Gemini},
	"qwen":      {wire: agent.Chat, base: "/v1", steers: true, loads: true},
	"codex-acp": {wire: agent.Responses, base: "/v1", steers: true, loads: true},
	"opencode":  {wire: agent.Chat, base: "/v1", steers: true, loads: true},
}

// installed is an agent's order against a model of a test.
func installed(t *testing.T, name, url string) agent.Order {
	t.Helper()
	program, path := agenttest.Real(t, name)
	t.Setenv("PATH", path)
	known, err := agent.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Order{
		Engine: acp.Name, Agent: name, Argv: append([]string{program}, known.Args...),
		Wire: real[name].wire, Base: url + real[name].base, Model: "test-model",
	}
}

// absolute gives files their whole names: not every agent's tools take less.
func absolute(dir string, turns [][]agenttest.Deed) [][]agenttest.Deed {
	for _, deeds := range turns {
		for i := range deeds {
			if deeds[i].Write != "" {
				deeds[i].Write = filepath.Join(dir, deeds[i].Write)
			}
		}
	}
	return turns
}

func TestRealAgentsHoldTheContractOfEngines(t *testing.T) {
	for name, is := range real {
		t.Run(name, func(t *testing.T) {
			installed(t, name, "")
			agenttest.Engine(t, agenttest.Subject{
				Steers: is.steers, Loads: is.loads, Patience: 2 * time.Minute,
				Make: func(t *testing.T, dir, _ string, turns [][]agenttest.Deed) (agent.Engine, agent.Order) {
					model := modeltest.Start(t)
					return modeltest.Play(model, acp.Engine{}, absolute(dir, turns)), installed(t, name, model.URL)
				},
			})
		})
	}
}

func TestRealAgentsAreRefusedByTheKindOfATool(t *testing.T) {
	for name := range real {
		t.Run(name, func(t *testing.T) {
			model := modeltest.Start(t)
			order := installed(t, name, model.URL)
			order.Denied = []string{"edit", "execute"}
			dir, show := t.TempDir(), &agenttest.Shown{}
			t.Chdir(dir)
			t.Setenv("HOME", t.TempDir())
			file := filepath.Join(dir, "a.txt")
			model.Converse("", modeltest.Do(modeltest.Write(file, "no\n")), modeltest.Say("Well."))
			talk, err := acp.Engine{}.Open(t.Context(), order, "", show)
			if err != nil {
				t.Fatal(err)
			}
			defer talk.Close()
			_, err = talk.Prompt(t.Context(), "Write the file")
			if asks := name != "codex-acp"; asks != (err == nil) {
				t.Errorf("the turn ended with %v", err)
			}
			if _, there := os.Stat(file); there == nil && name != "codex-acp" { // codex asks nobody: it is stopped once it is seen
				t.Errorf("the file was written\n%s", show)
			}
			if err == nil && !strings.Contains(show.String(), "refused: edit") {
				t.Errorf("it is not shown:\n%s", show)
			}
		})
	}
}

func TestRealAgentsChooseAModelThemselves(t *testing.T) {
	for _, name := range []string{"gemini", "codex-acp", "opencode"} {
		t.Run(name, func(t *testing.T) {
			model := modeltest.Start(t)
			order := installed(t, name, model.URL)
			order.Model = ""
			if name == "opencode" { // it knows the models of one vendor
				order.Wire, order.Base = agent.Messages, model.URL
			}
			dir, show := t.TempDir(), &agenttest.Shown{}
			t.Chdir(dir)
			t.Setenv("HOME", t.TempDir())
			file := filepath.Join(dir, "a.txt")
			model.Converse("", modeltest.Do(modeltest.Write(file, "yes\n")), modeltest.Say("Done."))
			talk, err := acp.Engine{}.Open(t.Context(), order, "", show)
			if err != nil {
				t.Fatal(err)
			}
			defer talk.Close()
			if _, err = talk.Prompt(t.Context(), "Write the file"); err != nil {
				t.Error(err)
			}
			// The model that codex takes is given its tools in a way that the test's model does not speak.
			if raw, err := os.ReadFile(file); strings.TrimSpace(string(raw)) != "yes" && name != "codex-acp" {
				t.Errorf("the file holds %q, %v\n%s", raw, err, show)
			}
			if len(model.Requests()) == 0 {
				t.Error("no model was asked")
			}
			for _, r := range model.Requests() {
				t.Logf("%s %s %s", r.Method, r.Path, r.Model)
				if r.Wire == "" || r.Model == "" || !strings.Contains(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key"), agent.DummyKey) {
					t.Errorf("it asks for %q with another key than it was given: %v", r.Model, r.Header)
				}
			}
		})
	}
}
