package api_test

import (
	"encoding/json"
	"testing"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/agent/agenttest"
	"sallyport/internal/port/agent/api"
)

func task(t *testing.T) agent.Task {
	return agent.Task{Agent: "api", Text: "do it", Home: t.TempDir(), Top: t.TempDir(), Path: "/usr/bin:/bin"}
}

func TestTheDriverHoldsThePortsPromises(t *testing.T) {
	agenttest.Run(t, api.New(), task(t))
}

func TestTheProgramIsOursAndItsModelIsAskedWhereTheHomeSays(t *testing.T) {
	for _, row := range []struct {
		settings agent.Settings
		wire     agent.Wire
		base     string
		keyless  bool
	}{
		{agent.Settings{}, agent.Messages, "https://api.anthropic.com", false},
		{agent.Settings{Wire: agent.Chat, Model: "m"}, agent.Chat, "https://api.openai.com/v1", false},
		{agent.Settings{Wire: agent.Responses}, agent.Responses, "https://api.openai.com/v1", false},
		{agent.Settings{Wire: agent.Chat, Base: "http://127.0.0.1:11434/v1"}, agent.Chat, "http://127.0.0.1:11434/v1", true},
		{agent.Settings{Wire: agent.Chat, Base: "https://models.example.org/v1"}, agent.Chat, "https://models.example.org/v1", false},
	} {
		want := task(t)
		want.Settings = row.settings
		p, err := api.New().Program(want)
		if err != nil {
			t.Fatal(err)
		}
		if m := p.Model; m == nil || m.Wire != row.wire || m.Base != row.base || m.Keyless != row.keyless {
			t.Errorf("%+v: %+v", row.settings, p.Model)
		}
		var o agent.Order
		if err := json.Unmarshal(p.Stdin, &o); err != nil {
			t.Fatal(err)
		}
		if o.Engine != "api" || o.Base != agent.ModelBase || o.Wire != row.wire || o.Model != row.settings.Model || o.Text != "do it" || len(o.Argv) != 0 {
			t.Errorf("it is ordered %+v", o)
		}
		if !p.Turns || !p.Keeps || !p.Messages || len(p.Binds) != 0 {
			t.Errorf("%+v", p)
		}
	}
}

func TestAnAgentOfAnotherDriverIsRefused(t *testing.T) {
	other := task(t)
	other.Agent = "codex"
	if _, err := api.New().Program(other); problem.KindOf(err) != problem.Usage {
		t.Errorf("%v", err)
	}
}
