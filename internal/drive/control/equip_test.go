package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/git"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/control"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// errSeen ends a request where its agent's program is resolved: nothing is begun.
var errSeen = problem.New(problem.Conflict, "seen")

// spy is a driver that remembers its task.
type spy struct {
	name string
	task *agent.Task
}

func (s spy) Name() string                   { return s.name }
func (spy) Capabilities() agent.Capabilities { return agent.Capabilities{} }
func (s spy) Program(t agent.Task) (agent.Program, error) {
	*s.task = t
	return agent.Program{}, errSeen
}

// agency is a home's choices by hand.
type agency map[string]live.Choice

func (a agency) Chosen(name string) (live.Choice, error) { return a[name], nil }

func (a agency) Budgets() (budget.Limits, error) { return budget.Limits{}, nil }

func TestAnAgentIsGivenWhatTheHomeSaysAndTheKeyThatIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("key-of-the-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := credential.Keys{"ANTHROPIC_API_KEY": secret.Hold("key-anthropic"), "OPENAI_API_KEY": secret.Hold("key-openai")}
	openai := credential.Keys{"OPENAI_API_KEY": secret.Hold("key-openai")}
	const local, away = "http://127.0.0.1:1/v1", "https://models.example.org/v1"
	for name, test := range map[string]struct {
		agent string
		home  live.Choice
		keys  credential.Keys
		wish  request.Request
		wire  agent.Wire
		base  string
		env   string
		model string
		next  string // of a refusal
		kind  problem.Kind
	}{
		"the first key that is there":          {agent: "pi", keys: openai, wire: agent.Chat, base: "https://api.openai.com/v1"},
		"the first endpoint of two keys":       {agent: "pi", keys: both, wire: agent.Messages, base: "https://api.anthropic.com"},
		"the wire that the home names":         {agent: "pi", keys: openai, home: live.Choice{Settings: agent.Settings{Wire: agent.Chat}}, wire: agent.Chat, base: "https://api.openai.com/v1"},
		"a key whose name says whose it is":    {agent: "pi", keys: openai, home: live.Choice{Key: "$OPENAI_API_KEY"}, wire: agent.Chat, base: "https://api.openai.com/v1"},
		"a key in a file":                      {agent: "codex", home: live.Choice{Key: credential.Reference("file:" + file)}, wire: agent.Responses, base: "https://api.openai.com/v1"},
		"a model of the person's":              {agent: "codex", keys: openai, home: live.Choice{Settings: agent.Settings{Model: "m1"}}, wish: request.Request{Model: "m2"}, wire: agent.Responses, base: "https://api.openai.com/v1", model: "m2"},
		"a model of the home's":                {agent: "codex", keys: openai, home: live.Choice{Settings: agent.Settings{Model: "m1"}}, wire: agent.Responses, base: "https://api.openai.com/v1", model: "m1"},
		"elsewhere by the environment":         {agent: "codex", keys: openai, wish: request.Request{Bases: map[string]string{"OPENAI_BASE_URL": away}}, wire: agent.Responses, base: away},
		"elsewhere by another's environment":   {agent: "codex", keys: openai, wish: request.Request{Bases: map[string]string{"ANTHROPIC_BASE_URL": away}}, wire: agent.Responses, base: "https://api.openai.com/v1"},
		"the home's place before the person's": {agent: "codex", keys: openai, home: live.Choice{Settings: agent.Settings{Base: local}}, wish: request.Request{Bases: map[string]string{"OPENAI_BASE_URL": away}}, wire: agent.Responses, base: local},
		// A key that the owner named goes where the owner says, not where an environment points.
		"the home's key and the person's place":    {agent: "codex", home: live.Choice{Key: credential.Reference("file:" + file)}, wish: request.Request{Bases: map[string]string{"OPENAI_BASE_URL": away}}, wire: agent.Responses, base: "https://api.openai.com/v1"},
		"on this machine without a key":            {agent: "codex", home: live.Choice{Settings: agent.Settings{Base: local}}, wire: agent.Responses, base: local},
		"any other without a model":                {agent: "acp:x --y", wire: "", base: ""},
		"any other with one":                       {agent: "acp:x", keys: credential.Keys{"K": secret.Hold("key")}, home: live.Choice{Key: "$K", Settings: agent.Settings{Wire: agent.Chat, Base: away}}, wire: agent.Chat, base: away},
		"variables of its own and of the person's": {agent: "acp:x", home: live.Choice{Settings: agent.Settings{Env: []string{"A=1", "B=$MY_B", "C=$"}}}, wish: request.Request{Env: map[string]string{"MY_B": "$two", "C": "3"}}, env: "A=1 B=$two C=$"},
		"the key itself, by another name":          {agent: "codex", keys: openai, home: live.Choice{Settings: agent.Settings{Env: []string{"A=$B"}}}, wish: request.Request{Env: map[string]string{"B": "x key-openai"}}, kind: problem.Refused, next: "sallyport agent list"},
		"a variable that is not set":               {agent: "acp:x", home: live.Choice{Settings: agent.Settings{Env: []string{"B=$MY_B"}}}, kind: problem.Usage, next: "MY_B=… sallyport run --agent 'acp:x' …"},
		"a key that is not asked for":              {agent: "codex", keys: credential.Keys{"HOME": secret.Hold("x")}, kind: problem.Usage, next: "sallyport agent list"},
		"a key of another's":                       {agent: "codex", keys: credential.Keys{"ANTHROPIC_API_KEY": secret.Hold("x")}, kind: problem.Usage, next: "sallyport agent list"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			task := agent.Task{}
			for _, driver := range []string{"codex", "acp", "pi"} {
				h.parts.Agents[driver] = spy{driver, &task}
			}
			h.parts.Agency = agency{test.agent: test.home}
			c := control.New(h.parts)
			r := test.wish
			r.By, r.Text, r.Agent, r.Project, r.Approve = h.by(), "x", test.agent, git.Project{Top: h.repo}, request.Later
			_, err := c.Request(t.Context(), r, test.keys)
			if test.kind != "" {
				if problem.KindOf(err) != test.kind || problem.Of(err).Next != test.next {
					t.Errorf("%v (next %q)", err, problem.Of(err).Next)
				}
				return
			}
			if !errors.Is(err, errSeen) {
				t.Fatalf("not resolved: %v", err)
			}
			if s := task.Settings; task.Agent != test.agent || s.Wire != test.wire || s.Base != test.base || s.Model != test.model || strings.Join(s.Env, " ") != test.env {
				t.Errorf("%s has %+v", task.Agent, s)
			}
		})
	}
}

// What is not installed is said before its key is missed.
func TestAMissingKeyIsSaidWithTheVariableAndTheCommand(t *testing.T) {
	h := newHome(t)
	h.parts.Agents["pi"], h.parts.Agents["codex"] = played{}, spy{"codex", &agent.Task{}}
	c := control.New(h.parts)
	r := request.Request{By: h.by(), Text: "x", Agent: "pi", Project: git.Project{Top: h.repo}, Approve: request.Later}
	_, err := c.Request(t.Context(), r, nil)
	if !errors.Is(err, credential.ErrMissing) || !strings.Contains(err.Error(), "$ANTHROPIC_API_KEY or $OPENAI_API_KEY is set neither in your shell nor where the daemon was started") || problem.Of(err).Next != "ANTHROPIC_API_KEY=… sallyport run --agent pi …" {
		t.Errorf("%v (next %q)", err, problem.Of(err).Next)
	}
	r.Agent = "codex"
	if _, err := c.Request(t.Context(), r, nil); !errors.Is(err, errSeen) {
		t.Errorf("%v", err)
	}
}

func TestWhatGoesIntoAnAgentsEnvironmentHoldsNoSecret(t *testing.T) {
	h := newHome(t)
	c := control.New(h.parts)
	r := request.Request{By: h.by(), Text: "x", Agent: "played", Argv: []string{"true"}, Project: git.Project{Top: h.repo}, Approve: request.Later,
		Env: map[string]string{"TEAM": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"}}
	_, err := c.Request(t.Context(), r, nil)
	if problem.KindOf(err) != problem.Usage || !strings.Contains(err.Error(), "what env: refers to holds a secret") || strings.Contains(err.Error(), "16C7e42F") {
		t.Errorf("%v", err)
	}
}
