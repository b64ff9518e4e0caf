// Package pi drives the pi coding agent by `pi --mode rpc`: one process for all turns, which takes commands and tells what it
// does as lines of JSON.
//
// pi has no sandbox and asks nobody: ours is the only one it needs. What a repository brings for pi is not run: its
// extensions, skills, prompts, themes and system prompts stay out; AGENTS.md and CLAUDE.md are read, as words. Its settings
// (.pi/settings.json) cannot be left out, but name neither the model nor where it is: both are given on the command line.
package pi

import (
	"sallyport/internal/port/agent"
)

// Name is the driver's and the engine's.
const Name = "pi"

// Driver starts the agent.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return Name }

// Capabilities says what the agent can do. It takes words in the middle of a turn.
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// closed are flags that keep what a repository brings from being run or from speaking as pi itself. The home's own
// arguments come after them: its owner may open again what they close. An empty system prompt is pi's own.
var closed = []string{
	"--offline", "--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--system-prompt", "", "--append-system-prompt", "",
}

// Program is the adapter, which starts pi where the person has it.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	return agent.Adapt(Name, task, closed)
}
