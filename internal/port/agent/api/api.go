// Package api is an agent of our own: it asks a model's endpoint what to do and does it with six tools. It needs no program but
// this one, so it works wherever there is a model: Anthropic messages, or whatever speaks OpenAI chat completions or responses.
//
// The wires are written here and not taken from the vendors' libraries. This code runs inside each sandbox, and there
// they would read credentials and base URLs from the environment and from files that the agent can write; linked, they
// made the program 6 and 19 MB larger. Of both vendors' APIs it needs one request.
package api

import (
	"sallyport/internal/port/agent"
)

// Name is the driver's and the engine's.
const Name = "api"

// Driver starts the agent.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return Name }

// Capabilities says what the agent can do. It stands still because every process of its sandbox does; asked to pause by a message it
// does not answer, as a model cannot (SV-081: acknowledged false, timeout true).
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// Program is our own program, which drives the Engine.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	return agent.Adapt(Name, task, nil)
}
