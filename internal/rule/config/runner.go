package config

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// RunnerFile says, in a group's folder runner/, how the group's agent runs.
const RunnerFile = "runner.yaml"

// Echo is the agent that needs no account: it answers with what it was told.
const Echo = "echo"

// The kinds of value that only runners have.
type (
	RunnerAgent string // Echo, or one of Agents
	ToolName    string // of a tool, as the agent or the host calls it
)

// HostTools are the tools that the host gives to the agent of a group.
var HostTools = []ToolName{"send_message", "ask_user_question", "schedule_task", "list_tasks", "cancel_task", "request_dev_changes"}

// undivided are the agents that have all of their own tools or none: their programs have no setting that takes one away.
var undivided = []RunnerAgent{"codex", "codex-acp"}

const toolForm = `^[A-Za-z][A-Za-z0-9_.:-]{0,63}$`

// RunnerAgents are the agents that a group may name. A group asks to have its own files changed, so a command line is none of them.
func RunnerAgents() []string { return append([]string{Echo}, Agents...) }

func (a *RunnerAgent) parse(text string) error {
	*a = RunnerAgent(text)
	if slices.Contains(RunnerAgents(), text) {
		return nil
	}
	return fmt.Errorf("%q is no agent that a group can have; write one of %s", text, strings.Join(RunnerAgents(), ", "))
}

// ParseRunnerAgent reads the name of an agent that a group can have. Errors: problem.Usage.
func ParseRunnerAgent(name string) (a RunnerAgent, err error) {
	if err := a.parse(name); err != nil {
		return "", problem.Errorf(problem.Usage, "sallyport agent list", "%w", err)
	}
	return a, nil
}

func (n *ToolName) parse(text string) error {
	*n = ToolName(text)
	if !match(toolForm, text) {
		return fmt.Errorf("%q is no name of a tool", text)
	}
	return nil
}

// Runner is the runner.yaml of a group. A zero means that the file is silent and the home's word holds.
type Runner struct {
	Agent    RunnerAgent   `json:"agent" jsonschema:"The agent that answers: echo, which needs no account, or codex, claude, codex-acp, gemini, opencode, qwen, pi, api."`
	Model    Model         `json:"model,omitempty" jsonschema:"The model that it asks, as its endpoint calls it (default: the home's for this agent)."`
	Rounds   int           `json:"rounds,omitempty" min:"1" max:"20" jsonschema:"How many times in all a change of its own files may be tried until the rules and checks pass (default 5)."`                         // CW-053
	ToolsOff []ToolName    `json:"tools_off,omitempty" jsonschema:"Tools that the agent is not given: its own or the host's, by name. codex and codex-acp can be kept from the host's alone."`                       // SM-165
	Mounts   []Mount       `json:"mounts,omitempty" jsonschema:"Folders of this machine that its agent sees below /extra, read-only unless readonly is false. The home's sallyport.yaml must have a root for each."` // CH-025
	Budgets  RunnerBudgets `json:"budgets,omitzero" jsonschema:"How much this group's agent may use. The home's budgets hold beside these."`
}

// Off are the names of the tools that the agent is not given.
func (r Runner) Off() []string {
	off := make([]string, len(r.ToolsOff))
	for i, name := range r.ToolsOff {
		off[i] = string(name)
	}
	return off
}

// RunnerBudgets bound what one group uses of models; 0 bounds nothing.
type RunnerBudgets struct {
	TokensPerHour int   `json:"tokens_per_hour,omitempty" min:"1" max:"1000000000000" jsonschema:"Tokens that it may use in an hour, read and written together."`
	TokensPerDay  int   `json:"tokens_per_day,omitempty" min:"1" max:"1000000000000" jsonschema:"Tokens that it may use in 24 hours."`
	CostPerHour   Money `json:"cost_per_hour,omitempty" jsonschema:"What it may cost in an hour, by the agent's price."`
	CostPerDay    Money `json:"cost_per_day,omitempty" jsonschema:"What it may cost in 24 hours."`
}

// ParseRunner reads a runner.yaml; name stands in messages, and mend is a command by which a person corrects the file. Errors: problem.Refused.
func ParseRunner(name, mend string, data []byte) (Runner, error) {
	var r Runner
	if err := parse(source{name: name, next: mend}, data, &r); err != nil {
		return Runner{}, err
	}
	if r.Agent == "" {
		return Runner{}, problem.Errorf(problem.Refused, mend, "%s names no agent; write agent: %s, or another", inert.Path(name), Echo)
	}
	if own := r.undivided(); own != "" {
		return Runner{}, problem.Errorf(problem.Refused, mend,
			"%s: tools_off: names %s, and the agent %s cannot be kept from a tool of its own, only from the host's", inert.Path(name), own, r.Agent)
	}
	return r, nil
}

// undivided is the first tool that the runner takes from an agent that has it all the same; "" = there is none.
func (r Runner) undivided() ToolName {
	if slices.Contains(undivided, r.Agent) {
		for _, name := range r.ToolsOff {
			if !slices.Contains(HostTools, name) {
				return name
			}
		}
	}
	return ""
}
