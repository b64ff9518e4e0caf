package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/drive/live"
	"sallyport/internal/path/request"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// known returns the named agent of a request; false for a command, a script and a revert.
func (c *Controller) known(r request.Request) (agent.Known, bool, error) {
	if r.Kind == request.Revert || !agent.Named(r.Agent) {
		return agent.Known{}, false, nil
	}
	k, err := agent.Lookup(r.Agent)
	if err != nil && c.Agents[r.Agent] != nil { // a driver whose name is no agent's
		return agent.Known{}, false, nil
	}
	return k, err == nil, err
}

// equipped is an agent's task with what goes with it.
type equipped struct {
	driver agent.Driver
	task   agent.Task
	key    secret.Value // of its model; empty: none is wanted
	limits sandbox.Limits
	wanted credential.Wanted // what was looked for
}

// program is what the agent's driver makes of its task.
func (e equipped) program() (agent.Program, error) { return e.driver.Program(e.task) }

// held are limits with those that the home has for this agent alone; the person's own time goes before them.
func (e equipped) held(l sandbox.Limits, r request.Request) sandbox.Limits {
	if e.limits.MemoryBytes > 0 {
		l.MemoryBytes = e.limits.MemoryBytes
	}
	if e.limits.Timeout > 0 && r.Timeout == 0 {
		l.Timeout = e.limits.Timeout
	}
	return l
}

// equip gathers what an agent is given for a request: the home's settings, the person's own words over them, and the key, which is
// held until the change ends.
//
// Errors: credential.ErrMissing (unavailable), with a next step that names the variable and the command.
func (c *Controller) equip(change id.Change, r request.Request) (equipped, error) {
	known, named, err := c.known(r)
	if err != nil {
		return equipped{}, err
	}
	name := r.Agent
	if named {
		name = known.Driver
	}
	e, ok := equipped{task: task(change, r)}, false
	if e.driver, ok = c.Agents[name]; !ok {
		return e, problem.Errorf(problem.Usage, "sallyport agent list", "there is no agent driver %q", name)
	}
	if !named {
		return e, nil
	}
	choice, err := c.Agency.Chosen(r.Agent)
	if err != nil {
		return e, err
	}
	s := choice.Settings
	if r.Model != "" {
		s.Model = r.Model
	}
	if s.Env, err = filled(s.Env, r); err != nil {
		return e, err
	}
	e.task.Agent, e.task.Settings, e.limits = r.Agent, s, choice.Limits
	all := endpoints(known, choice, r)
	if len(all) == 0 {
		return e, nil // it has no model through us
	}
	wanted, found := credential.Wanted{}, false
	for i, at := range all {
		w := at.wanted(r, choice)
		from, err := c.Keys.Has(string(change), w)
		if err != nil && !errors.Is(err, credential.ErrMissing) {
			return e, err
		}
		if found = from != ""; i == 0 || found {
			wanted, e.task.Settings = w, at.in(s)
		}
		if found {
			break
		}
	}
	if !found && choice.Key == "" { // any of them would do
		wanted.Names = keyNames(all)
	}
	e.wanted = wanted
	e.key, _, err = c.Keys.Find(string(change), wanted)
	if key := e.key.Reveal(); err == nil && key != "" {
		for _, v := range e.task.Settings.Env {
			if name, value, _ := strings.Cut(v, "="); strings.Contains(value, key) {
				return e, problem.Errorf(problem.Refused, "sallyport agent list", "agents: %s: env: in sallyport.yaml would take the model's key into the sandbox, as %s", r.Agent, name)
			}
		}
	}
	if errors.Is(err, credential.ErrMissing) {
		return e, problem.Errorf(problem.Unavailable, handing("sallyport change resume "+string(change), wanted), "%w", err)
	}
	return e, err
}

// referred is the variable that a value of env: refers to; "" if it stands for itself.
func referred(assignment string) string {
	_, value, _ := strings.Cut(assignment, "=")
	name, ok := strings.CutPrefix(value, "$")
	if !ok {
		return ""
	}
	return name
}

// filled are an agent's variables with what the person's environment had in place of what refers to it. What is not set is an error, not
// an empty text: an agent could take that for a choice.
func filled(env []string, r request.Request) (out []string, err error) {
	for _, v := range env {
		if from := referred(v); from != "" {
			name, _, _ := strings.Cut(v, "=")
			value, ok := r.Env[from]
			if !ok {
				return nil, problem.Errorf(problem.Usage, from+"=… "+asking(r), "agents: %s: env: in sallyport.yaml gives %s the value of $%[3]s, and $%[3]s is not set in your environment", r.Agent, name, from)
			}
			v = name + "=" + value
		}
		out = append(out, v)
	}
	return out, nil
}

// place is an endpoint that an agent may have, where the home or the person say it is.
type place struct{ agent.Endpoint }

// in are the settings with which an agent has its model there.
func (p place) in(s agent.Settings) agent.Settings {
	s.Wire, s.Base = p.Wire, p.Base
	return s
}

// wanted is the key of the endpoint, as the home says where it is or as people keep it.
func (p place) wanted(r request.Request, choice live.Choice) credential.Wanted {
	return credential.Wanted{Agent: r.Agent, Reference: choice.Key, Names: p.Keys, Keyless: p.Keyless && !r.Keyed}
}

// endpoints are the places where an agent's model may be, the first whose key is there counts. The home's word on where it is goes
// before the person's environment, which moves only what a key of that environment opens.
func endpoints(known agent.Known, choice live.Choice, r request.Request) (out []place) {
	s := choice.Settings
	wires := []agent.Wire{s.Wire}
	if s.Wire == "" {
		wires = nil
		for _, e := range known.Endpoints {
			wires = append(wires, e.Wire)
		}
		if v := choice.Key.Variable(); v != "" { // a key that has a name of its own says whose it is
			own := slices.IndexFunc(known.Endpoints, func(e agent.Endpoint) bool { return slices.Contains(e.Keys, v) })
			wires = wires[max(own, 0):min(max(own, 0)+1, len(wires))]
		}
	}
	for _, w := range wires {
		s.Wire, s.Base = w, choice.Settings.Base
		e := known.Endpoint(s)
		if e == nil {
			continue
		}
		if s.Base == "" && choice.Key == "" {
			for _, name := range e.Bases {
				if base := r.Bases[name]; base != "" {
					s.Base = base
					e = known.Endpoint(s)
					break
				}
			}
		}
		out = append(out, place{*e})
	}
	return out
}

func keyNames(all []place) (names []string) {
	for _, p := range all {
		for _, n := range p.Keys {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// handing is the command that hands over a missing key: the variable in front of one that takes it.
func handing(command string, w credential.Wanted) string {
	if names := w.Variables(); len(names) > 0 {
		return names[0] + "=… " + command
	}
	return command
}

// asking is the command that asks for a request's agent again.
func asking(r request.Request) string { return "sallyport run --agent " + word(r.Agent) + " …" }

// word is an agent's name as a shell takes it.
func word(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// usual fills in the agent that the repository names at the request's head.
func (c *Controller) usual(ctx context.Context, r *request.Request) error {
	if err := r.Project.Plain(); err != nil {
		return err
	}
	host, err := c.Workspaces.Repository(ctx, r.Project, r.Head)
	if err != nil {
		return err
	}
	judging, err := c.judge.At(ctx, r.Project, host, r.Head)
	if err != nil {
		return err
	}
	if r.Agent = judging.Agent; r.Agent == "" {
		return problem.Errorf(problem.Usage, "sallyport agent list",
			"no agent is named: give one with --agent, or a COMMAND after --, or have the repository's .sallyport.yaml name one (sallyport init writes that file, which counts once you have committed it)")
	}
	return nil
}
