package acp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/port/agent"
)

// place is where and with what an agent is started.
type place struct {
	agent.Order
	dir, home string
}

// title is what a session is called.
func (at place) title() string {
	if at.Chat {
		return "a conversation"
	}
	return "a change"
}

// dialect is what one agent wants beside the protocol. The zero value is an agent that wants nothing.
type dialect struct {
	files func(place) map[string]string // in its home folder, written at each start
	args  func(place) []string
	env   func(place) []string
	// instructions is the file in its home folder in which it takes what it is told once; "" = it is told before its first words.
	instructions string
	// inSession says that its session takes it.
	inSession bool
	// byHand says that it asks the host for things by a program, and not over MCP.
	byHand bool
	// session is the _meta of what begins a session or goes on with one.
	session func(place) object
	// model says that files, args or env tell it its model.
	model bool
	// unnamed are the wires on which it has no model unless it is told one.
	unnamed []agent.Wire
	// loads says that it goes on with an earlier session well, if it announces so.
	loads bool
	// drains says that it asks for words between its tool calls.
	drains bool
	// joins says that a prompt in the middle of a turn is taken into it.
	joins bool
	// late says that it calls a tool in progress before it asks whether it may use it.
	late bool
	// titled says that it asks the model for a title of a session that has none.
	titled bool
	// disguise says whether a turn that ended well by its answer has failed, and why.
	disguise func(*turn, turnOver) (string, bool)
}

// dialects are those of the agents in the table.
var dialects = map[string]dialect{
	"claude":    claude,
	"gemini":    gemini,
	"qwen":      qwen,
	"codex-acp": codex,
	"opencode":  opencode,
}

func dialectOf(name string) dialect {
	if d, ok := dialects[name]; ok {
		return d
	}
	return dialect{loads: true}
}

// prepare writes the agent's files.
func (d dialect) prepare(at place) error {
	files := map[string]string{}
	if d.files != nil {
		files = d.files(at)
	}
	if at.Chat && d.instructions != "" {
		files[d.instructions] = at.Foreword(d.byHand) + "\n"
	}
	for name, text := range files {
		if err := agent.WriteOwn(filepath.Join(at.home, name), []byte(text)); err != nil {
			return fmt.Errorf("write the agent's settings: %w", err)
		}
	}
	return nil
}

// arguments are those that the person did not give by themselves.
func (d dialect) arguments(at place) (args []string) {
	if d.args == nil {
		return nil
	}
	all := d.args(at)
	for i := 0; i+1 < len(all); i += 2 { // a name and a value each
		if !slices.ContainsFunc(at.Argv, func(a string) bool { return a == all[i] || strings.HasPrefix(a, all[i]+"=") }) {
			args = append(args, all[i], all[i+1])
		}
	}
	return args
}

// environment is for the agent alone: where its model is, by the names that are usual on its wire, and what its dialect wants. No key:
// what it is given for one opens nothing.
func (d dialect) environment(at place) (env []string) {
	env = []string{"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost"} // else the model is asked by way of the proxy
	if at.Base != "" {
		env = append(env, usual(at)...)
	}
	if d.env != nil {
		env = append(env, d.env(at)...)
	}
	return env
}

// usual are the names by which programs are told their model on a wire.
func usual(at place) []string {
	switch at.Wire {
	case agent.Messages:
		return []string{"ANTHROPIC_BASE_URL=" + at.Base, "ANTHROPIC_API_KEY=" + agent.DummyKey}
	case agent.Gemini:
		return []string{"GOOGLE_GEMINI_BASE_URL=" + at.Base, "GEMINI_API_KEY=" + agent.DummyKey}
	}
	return []string{"OPENAI_BASE_URL=" + at.Base, "OPENAI_API_KEY=" + agent.DummyKey}
}

// named adds a model's name to what has a place for it.
func named(args []string, flag, model string) []string {
	if model == "" {
		return args
	}
	return append(args, flag, model)
}

// encoded is plain data as JSON.
func encoded(v any) string {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // texts, numbers and bools always can be
	}
	return string(raw) + "\n"
}

type object = map[string]any
