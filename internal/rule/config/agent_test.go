package config_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/internal/port/agent"
	"sallyport/internal/rule/config"
)

func TestTheAgentsAndWiresOfAFileAreThoseThatThereAre(t *testing.T) {
	if !reflect.DeepEqual(config.Agents, agent.Names()) {
		t.Errorf("the files know %q, the table %q", config.Agents, agent.Names())
	}
	for _, w := range agent.Wires {
		if _, err := config.ParseSallyport("s", []byte("agents: {api: {wire: "+string(w)+"}}")); err != nil {
			t.Errorf("%s: %v", w, err)
		}
	}
}

func TestAnAgentIsWhatIsSaidOfIt(t *testing.T) {
	s, err := config.ParseSallyport("s", []byte(`
agents:
  codex:
    model: gpt-5
    key: $MY_KEY
    base: https://models.example.org/v1
    wire: chat
    args: [-c, "a=b c"]
    env: {RUST_LOG: info, empty: "", TEAM: $MY_TEAM}
    permissions: {fetch: deny, read: allow}
    rounds: 3
    price: {input: 1.25, cached: 0.000001, output: 10}
    memory: 4GiB
    timeout: 2h
  "acp:my agent --x": {model: m}
egress: [registries, example.org, {host: "*.example.net", ports: [8443], methods: [GET, HEAD], paths: [/v1, /a/b]}]
budgets: {tokens_per_change: 1, tokens_per_hour: 2, tokens_per_day: 3, cost_per_change: 0.5, cost_per_hour: 6, cost_per_day: 999999999.999999}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Sallyport{
		Agents: map[config.AgentName]config.Agent{
			"codex": {
				Model: "gpt-5", Key: "$MY_KEY", Base: "https://models.example.org/v1", Wire: "chat", Args: []config.Argument{"-c", "a=b c"},
				Env: map[config.Variable]config.VariableValue{"RUST_LOG": "info", "empty": "", "TEAM": "$MY_TEAM"}, Permissions: map[config.ToolKind]config.Permission{"fetch": "deny", "read": "allow"},
				Rounds: 3, Price: config.Price{Input: 1_250_000, Cached: 1, Output: 10_000_000}, Memory: 4 << 30, Timeout: config.Duration(2 * time.Hour),
			},
			"acp:my agent --x": {Model: "m"},
		},
		Egress: []config.Egress{
			{Set: "registries"}, {Reach: config.Reach{Host: "example.org"}},
			{Reach: config.Reach{Host: "*.example.net", Ports: []int{8443}, Methods: []config.Method{"GET", "HEAD"}, Paths: []config.URLPath{"/v1", "/a/b"}}},
		},
		Budgets: config.Budgets{TokensPerChange: 1, TokensPerHour: 2, TokensPerDay: 3, CostPerChange: 500_000, CostPerHour: 6_000_000, CostPerDay: config.MoneyMax},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v", s)
	}
	for amount, text := range map[config.Money]string{0: "0", 1: "0.000001", 500_000: "0.5", 6_000_000: "6", 10_010_000: "10.01"} {
		if amount.String() != text {
			t.Errorf("%d is written %s, not %s", amount, amount, text)
		}
	}
}

// A key that somebody wrote into the file all the same is refused without being told on.
func TestARefusalNeverHoldsTheKey(t *testing.T) {
	for _, key := range []string{"sk-proj-Abc123456789", "1234567890123", "[sk-proj-Abc123456789]", "'$sk-proj-Abc123456789'", "'file:sk-proj-Abc123456789'"} {
		_, err := config.ParseSallyport("s", []byte("agents: {codex: {key: "+key+"}}"))
		if err == nil || strings.Contains(err.Error(), "Abc123456789") || strings.Contains(err.Error(), "1234567890123") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestANewRepositoryFileSaysAllThereIsAndOnlyWhatWasChosen(t *testing.T) {
	silent, err := config.ParseRepository("r", []byte(config.RepositoryText("", "")))
	if err != nil || !reflect.DeepEqual(silent, config.Repository{}) {
		t.Errorf("%+v, %v", silent, err)
	}
	for _, name := range config.Agents {
		for _, strategy := range []config.Strategy{"direct_worktree", "shadow_workspace"} {
			text := config.RepositoryText(name, string(strategy))
			got, err := config.ParseRepository("r", []byte(text))
			if want := (config.Repository{Agent: config.KnownAgent(name), Interactive: config.Supervision{Strategy: strategy}}); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v", got, err)
			}
		}
	}
	// Every line that is commented out is one that is taken, and nothing is left unsaid.
	text := config.RepositoryText("", "")
	if _, err := config.ParseRepository("r", []byte(commented.ReplaceAllString(text, "$1"))); err != nil {
		t.Error(err)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Repository]()) {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key != "" && !strings.Contains(text, "\n#"+key+":") {
			t.Errorf("it does not speak of %s", key)
		}
	}
}
