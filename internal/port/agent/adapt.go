package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/sandbox"
)

const (
	// RoundsDefault is how many rounds of change and check an agent has at the most (CW-052).
	RoundsDefault = 5
	// TurnsMax is how many turns one program takes at the most, a person's words included.
	TurnsMax = 50
)

// Adapt makes of a task for a named agent the program that an adapter drives by the engine of this name. Args are
// the agent's own beside what the table and the home's settings say.
//
// Errors: problem.Usage if the agent is another driver's, problem.NotFound if it is not on this machine, or not in the image.
func Adapt(engine string, task Task, args []string) (Program, error) {
	k, err := Lookup(task.Agent)
	if err != nil {
		return Program{}, err
	}
	if k.Driver != engine {
		return Program{}, problem.Errorf(problem.Usage, "sallyport agent list", "the agent %q is not driven by %s", task.Agent, engine)
	}
	p := Program{
		Name: k.short(), Argv: []string{sandbox.SelfPath, "runner", "adapt"}, Messages: true, Turns: true, Keeps: true, Chat: task.Chat, Steers: k.Steers,
		Rounds: task.Settings.Rounds, Model: k.Endpoint(task.Settings),
	}
	o := Order{
		Engine: engine, Agent: task.Agent, Model: task.Settings.Model, Text: task.Text, Resumed: task.Resumed, MaxTurns: TurnsMax,
		Env: slices.Clone(task.Settings.Env),
	}
	if err := o.converse(task); err != nil {
		return Program{}, err
	}
	if p.Model != nil {
		o.Wire, o.Base, o.Login = p.Model.Wire, ModelBase, p.Model.Login
	}
	o.Denied = append(o.Denied, task.Denied...)
	for kind, allowed := range task.Settings.Permissions {
		if !allowed && !slices.Contains(o.Denied, kind) {
			o.Denied = append(o.Denied, kind)
		}
	}
	slices.Sort(o.Denied)
	if len(k.Programs) > 0 {
		in, err := k.installed(task)
		if err != nil {
			return Program{}, err
		}
		p.Dirs, p.Binds = in.Dirs, in.Binds
		o.Argv = slices.Concat([]string{in.Path}, k.Args, args, task.Settings.Args)
	}
	line, err := json.Marshal(o)
	if err != nil {
		return Program{}, fmt.Errorf("encode what %s is asked: %w", k.Name, err)
	}
	p.Stdin = append(line, '\n')
	return p, nil
}

// short is an agent's name for an identity: of an ACP agent that is in no table that of its program.
func (k Known) short() string {
	if strings.HasPrefix(k.Name, acpPrefix) {
		return filepath.Base(k.Programs[0])
	}
	return k.Name
}

// installed finds an agent's program as the person would, and what has to be shown for it to run.
func (k Known) installed(task Task) (sandbox.Installed, error) {
	person := sandbox.Person{Path: task.Path, Home: task.Home, Top: task.Top, Image: task.Image}
	next := k.Install
	if next == "" {
		next = "sallyport agent list"
	}
	last := os.ErrNotExist
	for _, name := range k.Programs {
		path, err := person.Find(name, task.Top)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				last = err
			}
			continue
		}
		in, err := person.Install(path)
		if task.Image != "" && errors.Is(err, os.ErrNotExist) {
			return in, person.Lacking(fmt.Sprintf("what the agent %q needs", k.Name), err)
		}
		if err != nil {
			return in, problem.Errorf(problem.NotFound, next, "the files of the agent %q cannot be shown in a sandbox: %w", k.Name, err)
		}
		return in, nil
	}
	if task.Image != "" {
		return sandbox.Installed{}, person.Lacking(fmt.Sprintf("the agent %q (%s)", k.Name, strings.Join(k.Programs, " or ")), last)
	}
	if programs := strings.Join(k.Programs, " or "); errors.Is(last, os.ErrNotExist) && !strings.Contains(programs, "/") {
		if task.Chat { // nobody's shell is there when a group is woken: only doctor, run in one, knows whether the agent is to be installed
			return sandbox.Installed{}, problem.Errorf(problem.NotFound, "sallyport doctor",
				"the agent %q was not found: no folder of the PATH that the daemon was started with has %s", k.Name, programs)
		}
		return sandbox.Installed{}, problem.Errorf(problem.NotFound, next, "the agent %q is not on this machine: no folder of PATH has %s", k.Name, programs)
	}
	return sandbox.Installed{}, problem.Errorf(problem.NotFound, next, "the agent %q is not on this machine: %w", k.Name, last)
}
