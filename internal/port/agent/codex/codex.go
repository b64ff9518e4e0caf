// Package codex drives the OpenAI Codex CLI by `codex exec --json`: one process a turn, which is given its words on stdin and
// tells what it does as lines of JSON.
//
// Its own sandbox is off inside ours: it needs namespaces that ours does not let it have, and then every command of it fails in a
// turn that ends well. Its model is the host's credential route; it is given a key that opens nothing.
package codex

import (
	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
)

// Name is the driver's and the engine's.
const Name = "codex"

// Driver starts the agent.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return Name }

// Capabilities says what the agent can do. It takes no words in the middle of a turn: they are its next turn's.
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// Program is the adapter, which starts codex where the person has it.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	if w := task.Settings.Wire; w != "" && w != agent.Responses && task.Agent == Name {
		return agent.Program{}, problem.Errorf(problem.Usage, "sallyport agent list",
			"codex speaks %s and nothing else, but wire: below agents: %s: in sallyport.yaml says %q; leave it out", agent.Responses, Name, w)
	}
	return agent.Adapt(Name, task, nil)
}
