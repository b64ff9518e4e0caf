package live

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/internal/base/disk/disktest"
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/budget"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// errSeen ends an agent where its program is resolved: nothing is begun.
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
type agency map[string]Choice

func (a agency) Chosen(name string) Choice { return a[name] }

func (a agency) Budgets() budget.Limits { return budget.Limits{} }

func TestAnAgentIsGivenWhatTheHomeSaysAndTheKeyThatIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	disktest.Put(t, file, "key-of-the-file", 0o600)
	both := credential.Keys{"ANTHROPIC_API_KEY": secret.Hold("key-anthropic"), "OPENAI_API_KEY": secret.Hold("key-openai")}
	openai := credential.Keys{"OPENAI_API_KEY": secret.Hold("key-openai")}
	const local, away = "http://127.0.0.1:1/v1", "https://models.example.org/v1"
	for name, test := range map[string]struct {
		agent string
		home  Choice
		keys  credential.Keys
		wish  Subject
		wire  agent.Wire
		base  string
		env   string
		model string
		next  string // of a refusal
		kind  problem.Kind
	}{
		"the first key that is there":          {agent: "pi", keys: openai, wire: agent.Chat, base: "https://api.openai.com/v1"},
		"the first endpoint of two keys":       {agent: "pi", keys: both, wire: agent.Messages, base: "https://api.anthropic.com"},
		"the wire that the home names":         {agent: "pi", keys: openai, home: Choice{Settings: agent.Settings{Wire: agent.Chat}}, wire: agent.Chat, base: "https://api.openai.com/v1"},
		"a key whose name says whose it is":    {agent: "pi", keys: openai, home: Choice{Key: "$OPENAI_API_KEY"}, wire: agent.Chat, base: "https://api.openai.com/v1"},
		"a key in a file":                      {agent: "codex", home: Choice{Key: credential.Reference("file:" + file)}, wire: agent.Responses, base: "https://api.openai.com/v1"},
		"a model of the person's":              {agent: "codex", keys: openai, home: Choice{Settings: agent.Settings{Model: "m1"}}, wish: Subject{Model: "m2"}, wire: agent.Responses, base: "https://api.openai.com/v1", model: "m2"},
		"a model of the home's":                {agent: "codex", keys: openai, home: Choice{Settings: agent.Settings{Model: "m1"}}, wire: agent.Responses, base: "https://api.openai.com/v1", model: "m1"},
		"elsewhere by the environment":         {agent: "codex", keys: openai, wish: Subject{Bases: map[string]string{"OPENAI_BASE_URL": away}}, wire: agent.Responses, base: away},
		"elsewhere by another's environment":   {agent: "codex", keys: openai, wish: Subject{Bases: map[string]string{"ANTHROPIC_BASE_URL": away}}, wire: agent.Responses, base: "https://api.openai.com/v1"},
		"the home's place before the person's": {agent: "codex", keys: openai, home: Choice{Settings: agent.Settings{Base: local}}, wish: Subject{Bases: map[string]string{"OPENAI_BASE_URL": away}}, wire: agent.Responses, base: local},
		// A key that the owner named goes where the owner says, not where an environment points.
		"the home's key and the person's place":    {agent: "codex", home: Choice{Key: credential.Reference("file:" + file)}, wish: Subject{Bases: map[string]string{"OPENAI_BASE_URL": away}}, wire: agent.Responses, base: "https://api.openai.com/v1"},
		"on this machine without a key":            {agent: "codex", home: Choice{Settings: agent.Settings{Base: local}}, wire: agent.Responses, base: local},
		"any other without a model":                {agent: "acp:x --y", wire: "", base: ""},
		"any other with one":                       {agent: "acp:x", keys: credential.Keys{"K": secret.Hold("key")}, home: Choice{Key: "$K", Settings: agent.Settings{Wire: agent.Chat, Base: away}}, wire: agent.Chat, base: away},
		"variables of its own and of the person's": {agent: "acp:x", home: Choice{Settings: agent.Settings{Env: []string{"A=1", "B=$MY_B", "C=$"}}}, wish: Subject{Env: map[string]string{"MY_B": "$two", "C": "3"}}, env: "A=1 B=$two C=$"},
		"the key itself, by another name":          {agent: "codex", keys: openai, home: Choice{Settings: agent.Settings{Env: []string{"A=$B"}}}, wish: Subject{Env: map[string]string{"B": "x key-openai"}}, kind: problem.Refused, next: "sallyport agent list"},
		"a variable that is not set":               {agent: "acp:x", home: Choice{Settings: agent.Settings{Env: []string{"B=$MY_B"}}}, kind: problem.Usage, next: "MY_B=… sallyport run --agent 'acp:x' …"},
		"a key that is not asked for":              {agent: "codex", keys: credential.Keys{"HOME": secret.Hold("x")}, kind: problem.Usage, next: "sallyport agent list"},
		"a key of another's":                       {agent: "codex", keys: credential.Keys{"ANTHROPIC_API_KEY": secret.Hold("x")}, kind: problem.Usage, next: "sallyport agent list"},
	} {
		t.Run(name, func(t *testing.T) {
			drivers, task := map[string]agent.Driver{}, agent.Task{}
			for _, driver := range []string{"codex", "acp", "pi"} {
				drivers[driver] = spy{driver, &task}
			}
			o := Outfitter{Agents: drivers, Agency: agency{test.agent: test.home}, Keys: credential.NewRing(nil, func(string) string { return "" })}
			s := test.wish
			s.ID, s.Agent, s.Asking = "chg-00000001", test.agent, "sallyport run --agent '"+test.agent+"' …"
			err := o.Receive(s, test.keys)
			var f Outfit
			if err == nil {
				f, err = o.Equip(s, agent.Task{})
			}
			if err == nil {
				_, err = f.Program()
			}
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
