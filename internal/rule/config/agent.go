package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/internal/rule/credential"
)

// Agents are the agents that have a name (package agent has the table; a test holds both together).
var Agents = []string{"codex", "claude", "codex-acp", "gemini", "opencode", "qwen", "pi", "api"}

// ToolKinds are the kinds of tool calls that the Agent Client Protocol knows.
var ToolKinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}

// The kinds of value that only agents have.
type (
	AgentName     string // of Agents, or acp:COMMAND
	KnownAgent    string // of Agents
	Model         string // as the endpoint calls it
	Wire          string // responses, chat, messages or gemini
	Key           string // see credential.Reference
	Base          string // see credential.CheckBase
	Argument      string // one word of a command line
	Variable      string // name of an environment variable that is an agent's to have
	VariableValue string // itself, or $NAME: what that variable holds in the person's environment
	ToolKind      string
	Permission    string // allow or deny
)

var (
	wires       = []string{"responses", "chat", "messages", "gemini"}
	permissions = []string{"allow", "deny"}
)

const (
	argumentBytesMax = 4096
	modelForm        = `^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$`
	acpForm          = `^acp:[^\x00-\x1f\x7f]*[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$`
)

func (n *AgentName) parse(text string) error {
	*n = AgentName(text)
	if slices.Contains(Agents, text) || len(text) <= argumentBytesMax && match(acpForm, text) {
		return nil
	}
	return fmt.Errorf("%q is no agent; write one of %s, or acp:COMMAND", text, strings.Join(Agents, ", "))
}

func (n *KnownAgent) parse(text string) error { return oneOf(n, text, Agents) }

func (m *Model) parse(text string) error {
	*m = Model(text)
	if !match(modelForm, text) {
		return fmt.Errorf("%q is no name of a model", text)
	}
	return nil
}

// CheckModel refuses what cannot be the name of a model; the error is one clause.
func CheckModel(text string) error {
	var m Model
	return m.parse(text)
}

func (w *Wire) parse(text string) error { return oneOf(w, text, wires) }

// parse never tells the text: it may be a key.
func (k *Key) parse(text string) error {
	r, err := credential.Parse(text)
	*k = Key(r)
	return err
}

func (Key) hidden() {}

func (b *Base) parse(text string) error {
	*b = Base(text)
	return credential.CheckBase(text)
}

func (Base) hidden() {}

func (a *Argument) parse(text string) error {
	*a = Argument(text)
	return plainText(text)
}

func (v *VariableValue) parse(text string) error {
	*v = VariableValue(text)
	if name, ok := strings.CutPrefix(text, "$"); ok {
		if err := new(Variable).named(name); err != nil {
			return fmt.Errorf("what begins with $ must be $NAME, a variable of your environment: %w", err)
		}
		return nil
	}
	return plainText(text)
}

func (VariableValue) hidden() {}

// CheckValue refuses what env: cannot refer to: a name of a key, or a value that no environment takes. The error is one clause, without the value.
func CheckValue(name, value string) error {
	if err := new(Variable).named(name); err != nil {
		return err
	}
	return plainText(value)
}

// plainText bounds a word for a command line or an environment. The error does not hold it.
func plainText(text string) error {
	switch {
	case len(text) > argumentBytesMax:
		return fmt.Errorf("it has %d bytes; %d is the limit", len(text), argumentBytesMax)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return errors.New("it holds a control character")
	}
	return nil
}

// ours are variables that the host sets inside; another value would open nothing and break much.
var ours = []string{"HOME", "PATH", "USER", "LOGNAME", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"}

// secretEnds are ends of names that hold a key: none enters a sandbox.
var secretEnds = []string{"KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSPHRASE", "_PASS", "PASSWD", "_PAT",
	"CREDENTIAL", "CREDENTIALS", "DATABASE_URL"}

func (v *Variable) parse(text string) error {
	if err := v.named(text); err != nil {
		return err
	}
	if slices.Contains(ours, strings.ToUpper(text)) {
		return fmt.Errorf("the host sets %s itself inside a sandbox", text)
	}
	return nil
}

// named takes the name of a variable that holds no key.
func (v *Variable) named(text string) error {
	*v = Variable(text)
	if err := credential.CheckVariable(text); err != nil {
		return err
	}
	upper := strings.ToUpper(text)
	if slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(upper, end) }) {
		return fmt.Errorf("%s names a key, and no key enters a sandbox: name the model's key by key:, and the host adds it outside", text)
	}
	return nil
}

func (k *ToolKind) parse(text string) error { return oneOf(k, text, ToolKinds) }

func (p *Permission) parse(text string) error { return oneOf(p, text, permissions) }

// Agent is a home's choices for one agent.
type Agent struct {
	Model       Model                      `json:"model,omitempty" jsonschema:"The model that it asks, as its endpoint calls it (default: the agent's own); --model names another."`
	Wire        Wire                       `json:"wire,omitempty" jsonschema:"The language of its model's endpoint: responses, chat (OpenAI and compatible), messages (Anthropic) or gemini; default: the first whose key is there."`
	Base        Base                       `json:"base,omitempty" jsonschema:"URL of its model's endpoint, without a slash at its end (default: that of the company whose language it is). http:// only on this machine or in its own network."`
	Key         Key                        `json:"key,omitempty" jsonschema:"Where its model's key is: $NAME of an environment variable, file:/path of a file that only its owner reads, or login for the login of the agent's own program (codex, claude). Never the key itself. It is added outside and enters no sandbox."`
	Args        []Argument                 `json:"args,omitempty" jsonschema:"Words that are added to its command line."`
	Env         map[Variable]VariableValue `json:"env,omitempty" jsonschema:"Variables that are added to its environment: a value, or $NAME for what that variable holds where a change is asked for; no key, which would enter the sandbox."`
	Permissions map[ToolKind]Permission    `json:"permissions,omitempty" jsonschema:"What it hears when it asks whether it may do something, by kind of tool call (default allow: the sandbox holds it)."`
	Rounds      int                        `json:"rounds,omitempty" min:"1" max:"20" jsonschema:"How many times in all it may try until the rules and checks pass (default 5)."` // CW-053
	Price       Price                      `json:"price,omitzero" jsonschema:"What its model costs, to count money as well as tokens."`
	Memory      Size                       `json:"memory,omitempty" min:"16MiB" max:"1TiB" jsonschema:"Memory of all its processes together, instead of limits.memory."`
	Timeout     Duration                   `json:"timeout,omitempty" min:"1s" max:"24h" jsonschema:"How long it may run, instead of limits.timeout; --timeout names another."`
}

// Price is what a model costs, per million tokens; of which money the owner knows.
type Price struct {
	Input  Money `json:"input,omitempty" jsonschema:"Per million tokens that it reads."`
	Cached Money `json:"cached,omitempty" jsonschema:"Per million tokens that its endpoint had read before (default: as input)."`
	Output Money `json:"output,omitempty" jsonschema:"Per million tokens that it writes, thinking included."`
}

func (p Price) fits() error {
	if p == (Price{}) {
		return errors.New("it names no price")
	}
	return nil
}

// Budgets bound what models use; 0 bounds nothing.
type Budgets struct {
	TokensPerChange int   `json:"tokens_per_change,omitempty" min:"1" max:"1000000000000" jsonschema:"Tokens that the agent of one change may use, read and written together."`
	TokensPerHour   int   `json:"tokens_per_hour,omitempty" min:"1" max:"1000000000000" jsonschema:"Tokens that all agents together may use in an hour."`
	TokensPerDay    int   `json:"tokens_per_day,omitempty" min:"1" max:"1000000000000" jsonschema:"Tokens that all agents together may use in 24 hours."`
	CostPerChange   Money `json:"cost_per_change,omitempty" jsonschema:"What the agent of one change may cost, by the agents' price."`
	CostPerHour     Money `json:"cost_per_hour,omitempty" jsonschema:"What all agents together may cost in an hour."`
	CostPerDay      Money `json:"cost_per_day,omitempty" jsonschema:"What all agents together may cost in 24 hours."`
}
