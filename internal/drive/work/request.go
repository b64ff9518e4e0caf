package work

import (
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
)

// Subject is a request as sandboxes know it before any rules were read: a change with this id, whose files belong to owner.
func Subject(change id.Change, r request.Request, owner sandbox.Owner) live.Subject {
	s := live.Subject{
		ID: change.Subject(), Owner: owner,
		Agent: r.Agent, Model: r.Model, Bases: r.Bases, Env: r.Env, Keyed: r.Keyed,
		Path: r.Path, Home: r.Home, Top: r.Project.Top,
		Shares: r.Shares, Profiles: r.Profiles, Egress: r.Egress, Timeout: r.Timeout,
		Asking: Asking(r), GoingOn: "sallyport change resume " + string(change),
	}
	switch {
	case !r.Worked():
		s.Agent = "" // none works for it
	case r.Kind == request.Swap:
		s.Asking = "sallyport chat " + Word(r.Group)
		s.GoingOn, s.Webless, s.Group = s.Asking, true, r.Group
	}
	return s
}

// Task is what an agent is given for a request.
func Task(r request.Request) agent.Task {
	if r.Kind == request.Swap {
		return agent.Task{Text: swapWords(r), Path: r.Path, Home: r.Home, Top: r.Project.Top, Tools: sandbox.ToolSocket, Denied: []string{agent.Fetch}}
	}
	return agent.Task{
		Text: r.Text, Argv: r.Argv, Script: r.Script, Messages: r.Messages,
		Path: r.Path, Home: r.Home, Top: r.Project.Top, Workdir: r.Workdir,
	}
}

// Asking is the command that asks for a request's agent again.
func Asking(r request.Request) string { return "sallyport run --agent " + Word(r.Agent) + " …" }

// Word is an agent's name as a shell takes it.
func Word(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
