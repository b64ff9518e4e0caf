// Package acp drives agents that speak the Agent Client Protocol, version 1: gemini, qwen, opencode, codex by its adapter, and any other.
//
// The protocol is spoken by a client of our own. It needs seven methods; the SDK that there is for it starts a goroutine for each
// request of the agent, without bound, keeps up to a thousand notifications of ten megabytes, prints what it cannot read to
// the log as it is, waits for ever to write to an agent that does not read, and refuses methods that some agents have added
// without an underscore. Here one goroutine reads, one writes, both in bounds, and an agent that breaks them is gone.
//
// An agent asks before it uses a tool, in whatever mode makes it ask; it is answered by the kind of the tool (Order.Denied), with an option
// that holds once. It is the sandbox that bounds an agent, not these answers: they are for a person's wishes.
package acp

import (
	"slices"
	"strings"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/rule/stuck"
)

// Name is the driver's and the engine's.
const Name = "acp"

// Driver starts agents that speak ACP.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return Name }

// Capabilities says what such an agent can do at the most: it stands still because every process of its sandbox does.
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// Program is our own program, which drives the agent's by the Engine.
//
// Errors: as of agent.Adapt; problem.Usage for a kind of tool call that there is not, and for an agent that has to be told its model.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	for kind, allowed := range task.Settings.Permissions {
		if !allowed && !slices.Contains(kinds, kind) {
			return agent.Program{}, problem.Errorf(problem.Usage, "sallyport agent list",
				"permissions: of the agent %q name the kind of tool call %q, which does not exist; the kinds are %s", task.Agent, kind,
				strings.Join(kinds, ", "))
		}
	}
	if task.Chat {
		task.Off = slices.Concat(task.Off, stuck.ToolsOff) // claude has them (CH-096)
	}
	p, err := agent.Adapt(Name, task, nil)
	if err != nil {
		return p, err
	}
	if p.Model != nil && task.Settings.Model == "" && slices.Contains(dialects[task.Agent].unnamed, p.Model.Wire) {
		return agent.Program{}, problem.Errorf(problem.Usage, "sallyport run --help",
			"%s chooses no model by itself for an endpoint that speaks %q: name one with --model, or as model: in the home's sallyport.yaml", task.Agent, p.Model.Wire)
	}
	return p, nil
}
