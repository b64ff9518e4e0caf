package agent

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"sallyport/internal/base/problem"
)

const (
	// ToolsVariable says to every program of a session where it asks the host for things: Order.Tools.
	ToolsVariable = "SALLYPORT_TOOLS"
	// ToolsProgram is on the PATH of a session that has tools. It serves them over MCP and, run with words, calls one.
	ToolsProgram = "sallyport-tool"
	// ToolsName is the host's name among an agent's MCP servers.
	ToolsName = "sallyport"
)

// converse gives an order the tools of the host, takes those that are off, and has it serve a conversation, if the task is one.
func (o *Order) converse(task Task) error {
	if o.Tools = task.Tools; o.Tools != "" {
		o.Env = append(o.Env, ToolsVariable+"="+o.Tools)
	}
	o.Off = slices.Compact(slices.Sorted(slices.Values(task.Off)))
	if !task.Chat {
		return nil
	}
	o.Chat, o.Text, o.System = true, "", strings.TrimSpace(task.System)
	if len(o.System) > SystemBytesMax {
		return problem.Errorf(problem.Usage, "sallyport group list", "the prompts of the group have %d bytes; %d is the limit", len(o.System), SystemBytesMax)
	}
	return nil
}

// ToolServer is the command of the MCP server that has the host's tools; nil if there are none. The socket is an argument: some agents
// give their servers no environment.
func (o Order) ToolServer() ([]string, error) {
	if o.Tools == "" {
		return nil, nil
	}
	program, err := exec.LookPath(ToolsProgram)
	if err != nil {
		return nil, fmt.Errorf("the tools of the host cannot be used: %w", err)
	}
	return []string{program, "--socket", o.Tools, "mcp"}, nil
}

// background is what every agent of a conversation is told of long work (CH-095); a test holds it to stuck.ToolBudget, which the runner
// does not link.
const background = "Work that takes longer than 30 minutes belongs in the background: start it so that the tool returns at once, and look at it " +
	"later. A tool that declares no time of its own is ended after 30 minutes."

// Foreword is what the agent of a conversation is told once; "" for a change. With byHand it is told to ask the host by a program,
// because it speaks no MCP.
func (o Order) Foreword(byHand bool) string {
	if !o.Chat {
		return ""
	}
	parts := []string{o.System}
	if !strings.Contains(o.System, background) {
		parts = append(parts, background)
	}
	if byHand && o.Tools != "" {
		parts = append(parts, "The host that you run on has tools for you: to send a message before your turn ends, to ask the people of the "+
			"conversation, to have something done later. They are called by the program "+ToolsProgram+" in your shell: "+ToolsProgram+" --help lists them.")
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}
