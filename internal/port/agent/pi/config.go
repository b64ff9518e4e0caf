package pi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/port/agent"
)

// custom is the provider that has a model of which pi knows nothing.
const custom = "sallyport"

// wire says how pi asks an endpoint.
type wire struct {
	api     string // pi's name of it
	path    string // what pi wants below the base
	builtin string // the provider whose models pi knows; "" = none speaks this wire
	key     string // where this provider looks for a key
	usual   string // the model, if nobody names one
}

var wires = map[agent.Wire]wire{
	agent.Messages:  {"anthropic-messages", "", "anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-4-5"},
	agent.Responses: {"openai-responses", "", "openai", "OPENAI_API_KEY", "gpt-5"},
	agent.Chat:      {"openai-completions", "", "", "", "gpt-5"},
	agent.Gemini:    {"google-generative-ai", "/v1beta", "google", "GEMINI_API_KEY", "gemini-2.5-pro"},
}

// setup is what pi is started with.
type setup struct {
	wire  wire
	base  string
	model string
	home  string
	told  string // of a conversation: what it is told once
}

func newSetup(o agent.Order, home string) (setup, error) {
	w, ok := wires[o.Wire]
	switch {
	case o.Base == "":
		return setup{}, errors.New("pi has no model that it may ask")
	case !ok:
		return setup{}, fmt.Errorf("pi does not speak %q; it speaks chat, messages, responses and gemini", o.Wire)
	}
	s := setup{wire: w, base: o.Base + w.path, model: o.Model, home: home}
	if o.Chat {
		s.told = o.Foreword(true)
	}
	if s.model == "" {
		s.model = w.usual
	}
	return s, nil
}

// dir is where pi keeps what is its own.
func (s setup) dir() string { return filepath.Join(s.home, ".pi", "agent") }

// instructions is the file with what pi is told once.
func (s setup) instructions() string { return filepath.Join(s.dir(), "sallyport.md") }

// env switches off what pi would do on its own. It comes last: nothing else moves its folder or its model.
func (s setup) env() []string {
	env := []string{"PI_OFFLINE=1", "PI_TELEMETRY=0", "PI_SKIP_VERSION_CHECK=1", "PI_CODING_AGENT_DIR=" + s.dir()}
	if s.wire.key != "" {
		env = append(env, s.wire.key+"="+agent.DummyKey)
	}
	return env
}

// tools are pi's, by what they do; search is off unless it is asked for.
var tools = []struct{ name, kind string }{
	{"read", "read"}, {"bash", "execute"}, {"edit", "edit"}, {"write", "edit"},
}

// kind says what a tool of pi does, in the words of agent.Show.
func kind(tool string) string {
	switch tool {
	case "grep", "find":
		return "search"
	case "ls":
		return "read"
	}
	for _, t := range tools {
		if t.name == tool {
			return t.kind
		}
	}
	return "other"
}

// flags are those of one start, without the tools that are off and those of a kind that is denied. They come last on the command line:
// they win over the home's own.
func (s setup) flags(session string, off, denied []string) []string {
	provider := s.wire.builtin
	if provider == "" {
		provider = custom
	}
	out := []string{"--provider", provider, "--model", s.model, "--session-dir", s.sessions(), "--session", session}
	if s.told != "" {
		out = append(out, "--append-system-prompt", s.instructions())
	}
	var left []string
	for _, t := range tools {
		if !slices.Contains(off, t.name) && !slices.Contains(denied, t.kind) {
			left = append(left, t.name)
		}
	}
	switch len(left) {
	case len(tools):
		return out
	case 0:
		return append(out, "--no-tools")
	}
	return append(out, "--tools", strings.Join(left, ","))
}

// write makes pi's files anew: what an earlier session left there, or the agent wrote, says nothing about its model.
func (s setup) write() error {
	type object = map[string]any
	models := object{custom: object{
		"baseUrl": s.base, "api": s.wire.api, "apiKey": agent.DummyKey,
		"models": []object{{"id": s.model, "reasoning": false, "input": []string{"text"}}},
	}}
	if s.wire.builtin != "" {
		models[s.wire.builtin] = object{"baseUrl": s.base, "apiKey": agent.DummyKey}
	}
	if err := os.MkdirAll(s.sessions(), 0o700); err != nil {
		return fmt.Errorf("make its folder: %w", err)
	}
	files := map[string][]byte{}
	if s.told != "" {
		files[s.instructions()] = []byte(s.told + "\n")
	}
	for name, content := range map[string]object{
		"models.json": {"providers": models},
		"settings.json": {
			"enableInstallTelemetry": false, "quietStartup": true, "steeringMode": "all",
			"defaultProvider": custom, "defaultModel": s.model,
		},
		"auth.json": {},
	} {
		raw, err := json.Marshal(content)
		if err != nil {
			return err
		}
		files[filepath.Join(s.dir(), name)] = append(raw, '\n')
	}
	for path, raw := range files {
		if err := os.RemoveAll(path); err != nil { // it may be a link, or no file at all
			return fmt.Errorf("write its settings: %w", err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return fmt.Errorf("write its settings: %w", err)
		}
	}
	return nil
}

// brought is where a repository has what is pi's, in the folder that pi stands in.
const brought = ".pi"

// keepCommands keeps pi from moving a folder of the repository: it would rename commands to prompts when it starts, and nobody has
// asked for that. It returns what puts it back.
func keepCommands() (restore func()) {
	from, to := filepath.Join(brought, "commands"), filepath.Join(brought, "prompts")
	_, err := os.Lstat(from)
	_, other := os.Lstat(to)
	if err != nil || !errors.Is(other, os.ErrNotExist) {
		return func() {}
	}
	return func() {
		if _, err := os.Lstat(from); errors.Is(err, os.ErrNotExist) {
			_ = os.Rename(to, from) // there is nothing to put back if pi no longer does this
		}
	}
}
