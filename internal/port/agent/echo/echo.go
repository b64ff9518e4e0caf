// Package echo is an agent of our own that needs no account and no model: it serves conversations, and answers each batch with the words
// that were said to it, a line for each message. So a home works on its first day, and whatever carries messages can be tried by hand.
//
// A message that begins with one of these does something instead, by the same ways as any agent:
//
//	/help                     says what there is
//	/remember WORDS           writes them into the memory folder
//	/recall                   says what stands there
//	/tool SECONDS             is busy with a tool for so long; an interruption ends it
//	/say WORDS                sends them before the turn ends
//	/ask QUESTION | A | B     asks the people of the conversation; without options the answer is free text
//	/remind WHEN WORDS        has them said later: 2026-02-04T09:00 by the user's clock, or again and again, as in 90m
//	/tasks                    lists what is scheduled
//	/cancel ID                cancels it
//	/change LINES             has what the group runs changed, as dev.go says
//	/fail WORDS               fails the turn, for this reason
//
// If a prompt of the group has a line Greeting: WORDS, each turn's answer begins with these, with the sender's name for {name}.
//
// A task's text is a message like any other when its time has come. What else begins with a slash is echoed.
package echo

import (
	"sallyport/internal/port/agent"
)

// Name is the driver's, the engine's and the agent's.
const Name = "echo"

// Driver starts the agent.
type Driver struct{}

// New returns the driver.
func New() Driver { return Driver{} }

var _ agent.Driver = Driver{}

func (Driver) Name() string { return Name }

// Capabilities says what the agent can do.
func (Driver) Capabilities() agent.Capabilities { return agent.Sandboxed }

// Program is our own program, which drives the Engine. Errors: problem.Usage for a change.
func (Driver) Program(task agent.Task) (agent.Program, error) {
	if task.Agent == Name && !task.Chat && task.Tools == "" {
		return agent.Program{}, errNoTools
	}
	return agent.Adapt(Name, task, nil)
}
