package agent

import (
	"slices"
	"strings"

	"sallyport/internal/base/problem"
)

// Known is an agent that people use, as data: how it is found, started and given its model.
type Known struct {
	Name     string   // as --agent takes it
	Title    string   // who makes it
	Driver   string   // command, replay, codex, acp, pi, api, echo
	Programs []string // names in PATH, the first that is there counts; none: our own program is the agent
	Args     []string // that make the program speak its driver's protocol
	Version  []string // arguments that show its version; none: it shows none
	Install  string   // a command that installs it
	// Endpoints are where its model may be; the first whose key is there counts, unless the home names a wire. None:
	// it has a model only if the home gives one.
	Endpoints []Endpoint
	// Login is that of its own program, and where its model is with it; nil: it has none that sallyport can use.
	Login *Login
	// Hosts are asked for beside the model whatever its settings are. It works without them; they are refused unless egress: names them.
	Hosts  []string
	Off    []string // what of its own is switched off inside, in words
	Talks  bool     // it serves conversations and changes no files
	Steers bool     // it takes words in the middle of a turn
}

// Names of the agents that need no table.
const (
	CommandName = "command" // any program, after --
	ReplayName  = "replay"  // a script
	acpPrefix   = "acp:"
)

var (
	openAIBases    = []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}
	anthropicBases = []string{"ANTHROPIC_BASE_URL"}
	geminiBases    = []string{"GOOGLE_GEMINI_BASE_URL"}
)

// known is the table; names are in the order in which they are shown.
var known = []Known{
	{
		Name: "codex", Title: "OpenAI Codex CLI", Driver: "codex", Programs: []string{"codex"},
		Args: []string{"exec", "--json"}, Version: []string{"--version"}, Install: "npm install -g @openai/codex",
		Endpoints: []Endpoint{Responses.at(openAIBases, "CODEX_API_KEY", "OPENAI_API_KEY")}, Login: &chatGPT,
		Off: []string{"its own sandbox", "its approvals", "web search", "plugins", "update checks", "analytics"},
	},
	{
		Name: "claude", Title: "Claude Code over ACP", Driver: "acp", Steers: true, Programs: []string{"claude-agent-acp"},
		Version: []string{"--version"}, Install: "npm install -g @agentclientprotocol/claude-agent-acp",
		Endpoints: []Endpoint{Messages.at(anthropicBases, "ANTHROPIC_API_KEY")}, Login: &claudeAccount,
		Off: []string{"its own sandbox", "titles of sessions", "telemetry", "error reports", "update checks"},
	},
	{
		Name: "codex-acp", Title: "OpenAI Codex over ACP", Driver: "acp", Steers: true, Programs: []string{"codex-acp"},
		Version: []string{"--version"}, Install: "npm install -g @agentclientprotocol/codex-acp",
		Endpoints: []Endpoint{Responses.at(openAIBases, "CODEX_API_KEY", "OPENAI_API_KEY")}, Login: &chatGPT,
		Off: []string{"its own sandbox", "web search", "plugins", "titles of sessions", "update checks", "analytics"},
	},
	{
		Name: "gemini", Title: "Google Gemini CLI", Driver: "acp", Programs: []string{"gemini"},
		Args: []string{"--acp"}, Version: []string{"--version"}, Install: "npm install -g @google/gemini-cli",
		Endpoints: []Endpoint{Gemini.at(geminiBases, "GEMINI_API_KEY", "GOOGLE_API_KEY")},
		Off:       []string{"its own sandbox", "usage statistics", "telemetry", "update checks"},
	},
	{
		Name: "opencode", Title: "opencode", Driver: "acp", Steers: true, Programs: []string{"opencode"},
		Args: []string{"acp"}, Version: []string{"--version"}, Install: "npm install -g opencode-ai",
		Endpoints: []Endpoint{Messages.at(anthropicBases, "ANTHROPIC_API_KEY"), Chat.at(openAIBases, "OPENAI_API_KEY")},
		Hosts:     []string{"registry.npmjs.org"},
		Off:       []string{"update checks", "downloads of lists of models"},
	},
	{
		Name: "qwen", Title: "Qwen Code", Driver: "acp", Steers: true, Programs: []string{"qwen"},
		Args: []string{"--acp"}, Version: []string{"--version"}, Install: "npm install -g @qwen-code/qwen-code",
		Endpoints: []Endpoint{Chat.at(openAIBases, "OPENAI_API_KEY")},
		Off:       []string{"its own sandbox", "memory and suggestions after a turn", "usage statistics", "telemetry", "update checks"},
	},
	{
		Name: "pi", Title: "pi coding agent", Driver: "pi", Steers: true, Programs: []string{"pi"},
		Args: []string{"--mode", "rpc"}, Version: []string{"--version"}, Install: "npm install -g @earendil-works/pi-coding-agent",
		Endpoints: []Endpoint{Messages.at(anthropicBases, "ANTHROPIC_API_KEY"), Chat.at(openAIBases, "OPENAI_API_KEY")},
		Off:       []string{"update checks", "telemetry", "extensions, skills, prompts and system prompts of the repository"},
	},
	{
		Name: "api", Title: "sallyport's own agent, on any model", Driver: "api", Steers: true,
		Endpoints: []Endpoint{
			Messages.at(anthropicBases, "ANTHROPIC_API_KEY"), Chat.at(openAIBases, "OPENAI_API_KEY"), Responses.at(openAIBases, "OPENAI_API_KEY"),
		},
	},
	{Name: "echo", Title: "answers in conversations with what it was told", Driver: "echo", Talks: true, Steers: true},
}

// Table returns every named agent.
func Table() []Known { return slices.Clone(known) }

// Names are those of the table that change files.
func Names() []string {
	names := make([]string, 0, len(known))
	for _, k := range known {
		if !k.Talks {
			names = append(names, k.Name)
		}
	}
	return names
}

// Lookup returns a named agent; `acp:CMD` is one that speaks ACP and is in no table. Errors: problem.Usage, naming those that there are.
func Lookup(name string) (Known, error) {
	for _, k := range known {
		if k.Name == name {
			return k, nil
		}
	}
	if rest, ok := strings.CutPrefix(name, acpPrefix); ok {
		words, err := Words(rest)
		if err != nil {
			return Known{}, problem.Errorf(problem.Usage, "sallyport agent list",
				"--agent %q names no command, for the text behind acp: is not one: %w", name, err)
		}
		return Known{Name: name, Title: "an ACP agent", Driver: "acp", Programs: words[:1], Args: words[1:]}, nil
	}
	return Known{}, problem.Errorf(problem.Usage, "sallyport agent list",
		"there is no agent %q; there are %s, and 'acp:COMMAND' for any other that speaks ACP", name, strings.Join(Names(), ", "))
}

// Named reports whether an agent is driven by an adapter: everything but a command and a script.
func Named(name string) bool { return name != "" && name != CommandName && name != ReplayName }

// Endpoint is where k's model is by a home's settings; nil if it has none. With no wire set it is the first.
func (k Known) Endpoint(s Settings) *Endpoint {
	if s.Login && k.Login != nil {
		e := k.Login.Endpoint
		return &e
	}
	for _, e := range k.Endpoints {
		if s.Wire == "" || e.Wire == s.Wire {
			return e.by(s)
		}
	}
	if e, ok := endpoints[s.Wire]; ok && (s.Base != "" || len(k.Endpoints) > 0) { // the home gives an agent a model that its table does not know
		return e.by(s)
	}
	return nil
}

// by returns a copy of e at the URL that the home gives.
func (e Endpoint) by(s Settings) *Endpoint {
	if s.Base != "" {
		e.Base = s.Base
	}
	e.Keyless = e.Keyless || Local(e.Base)
	return &e
}

// KeyNames are the variables in which people keep k's key, those of every endpoint it may have.
func (k Known) KeyNames() []string {
	var names []string
	for _, e := range k.Endpoints {
		for _, n := range e.Keys {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}
