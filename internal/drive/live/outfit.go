package live

import (
	"context"
	"errors"
	"strings"
	"time"

	"sallyport/internal/base/problem"
	"sallyport/internal/port/agent"
	"sallyport/internal/port/login"
	"sallyport/internal/port/sandbox"
	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/secret"
)

// Outfitter gathers what an agent is given: its driver and task, what the home has chosen for it, and the key of its model.
type Outfitter struct {
	Agents map[string]agent.Driver
	Agency Agency
	Keys   *credential.Ring
	Logins *login.Logins
	Shown  Defaults // whose image their programs are looked up in
}

// Known returns a named agent; false for a command, a script, and where there is no agent.
func (o Outfitter) Known(name string) (agent.Known, bool, error) {
	if !agent.Named(name) {
		return agent.Known{}, false, nil
	}
	k, err := agent.Lookup(name)
	if err != nil && o.Agents[name] != nil { // a driver whose name is no agent's
		return agent.Known{}, false, nil
	}
	return k, err == nil, err
}

// Outfit is an agent's task with what goes with it.
type Outfit struct {
	Driver agent.Driver
	Task   agent.Task
	Key    secret.Value // of its model; empty: none is wanted
	Login  *login.Login // in place of a key; nil: none is wanted
	Limits sandbox.Limits
	Wanted credential.Wanted // what was looked for
}

// Program is what the agent's driver makes of its task.
func (f Outfit) Program() (agent.Program, error) { return f.Driver.Program(f.Task) }

// Within are limits with those that the home has for this agent alone; own, the person's time, goes before them.
func (f Outfit) Within(l sandbox.Limits, own time.Duration) sandbox.Limits {
	if f.Limits.MemoryBytes > 0 {
		l.MemoryBytes = f.Limits.MemoryBytes
	}
	if f.Limits.Timeout > 0 && own == 0 {
		l.Timeout = f.Limits.Timeout
	}
	return l
}

// Equip gathers what the agent of a subject is given for a task: the home's settings, the person's own words over them, and the key,
// which is held until the subject is forgotten.
//
// Errors: credential.ErrMissing (unavailable), with a next step that names the variable and the command.
func (o Outfitter) Equip(s Subject, task agent.Task) (Outfit, error) {
	known, named, err := o.Known(s.Agent)
	if err != nil {
		return Outfit{}, err
	}
	name := s.Agent
	if named {
		name = known.Driver
	}
	task.Image = o.Shown.ImageFor(s)
	f, ok := Outfit{Task: task}, false
	if f.Driver, ok = o.Agents[name]; !ok {
		return f, problem.Errorf(problem.Usage, "sallyport agent list", "there is no agent driver %q", name)
	}
	if !named {
		return f, nil
	}

	choice := o.Agency.Chosen(s.Agent)
	settings := choice.Settings
	if s.Model != "" {
		settings.Model = s.Model
	}
	if settings.Env, err = filled(settings.Env, s); err != nil {
		return f, err
	}
	f.Task.Agent, f.Task.Settings, f.Limits = s.Agent, settings, choice.Limits
	if choice.Key == credential.Login {
		err = o.findLogin(&f, known, choice)
		return f, err
	}
	all := endpoints(known, choice, s)
	if len(all) == 0 {
		return f, nil // it has no model through us
	}
	if err = o.findKey(&f, s, choice, all); errors.Is(err, credential.ErrMissing) && choice.Key == "" && o.hasLogin(known) {
		err = problem.Errorf(problem.Unavailable, problem.Of(err).Next,
			"%w; it is logged in here, and key: login below agents: %s: in sallyport.yaml uses that", err, s.Agent)
	}
	return f, err
}

// Enter makes sure that the login of an outfit is good, and renews it if need be. Errors: as of login.Login.Present.
func (f Outfit) Enter(ctx context.Context) error {
	if f.Login == nil {
		return nil
	}
	_, err := f.Login.Present(ctx)
	return err
}

// findLogin finds the login of an agent's own program. It goes to its vendor alone, so the home names no other place.
func (o Outfitter) findLogin(f *Outfit, known agent.Known, choice Choice) error {
	l, err := o.Login(known, choice)
	if err != nil {
		return err
	}
	f.Login, f.Task.Settings.Login = l, true
	return l.Check()
}

// Login returns the login of an agent's own program, for a home that has chosen it. Errors: usage, if that cannot be.
func (o Outfitter) Login(known agent.Known, choice Choice) (*login.Login, error) {
	switch {
	case known.Login == nil || o.Logins == nil:
		return nil, problem.Errorf(problem.Refused, "sallyport agent list",
			"key: login below agents: %s: in sallyport.yaml cannot be: sallyport knows no login of this agent; name its key, as $NAME or file:/path", known.Name)
	case choice.Settings.Base != "" || choice.Settings.Wire != "":
		return nil, problem.Errorf(problem.Refused, "sallyport agent list",
			"agents: %s: in sallyport.yaml has key: login and base: or wire:, but a login is sent to its own endpoint alone; leave them out", known.Name)
	}
	return o.Logins.Of(known.Login.Of)
}

// hasLogin reports whether the agent's own program is logged in here.
func (o Outfitter) hasLogin(known agent.Known) bool {
	if known.Login == nil || o.Logins == nil {
		return false
	}
	l, err := o.Logins.Of(known.Login.Of)
	return err == nil && l.Check() == nil
}

// findKey finds the key of an agent's model, and with it which of its endpoints the agent uses.
func (o Outfitter) findKey(f *Outfit, s Subject, choice Choice, all []place) (err error) {
	settings, found := f.Task.Settings, false
	for i, at := range all {
		w := at.wanted(s, choice)
		from, err := o.Keys.Has(string(s.ID), w)
		if err != nil && !errors.Is(err, credential.ErrMissing) {
			return err
		}
		if found = from != ""; i == 0 || found {
			f.Wanted, f.Task.Settings = w, at.in(settings)
		}
		if found {
			break
		}
	}
	if !found && choice.Key == "" { // any of them would do
		f.Wanted.Names = keyNames(all)
	}

	f.Key, _, err = o.Keys.Find(string(s.ID), f.Wanted)
	if key := f.Key.Reveal(); err == nil && key != "" {
		for _, v := range f.Task.Settings.Env {
			if name, value, _ := strings.Cut(v, "="); strings.Contains(value, key) {
				return problem.Errorf(problem.Refused, "sallyport agent list",
					"agents: %s: env: in sallyport.yaml would take the model's key into the sandbox, as %s", s.Agent, name)
			}
		}
	}
	if errors.Is(err, credential.ErrMissing) {
		if _, asked := s.ID.Change(); !asked && s.ID != "" { // nobody's shell is there when a group is woken
			return problem.Errorf(problem.Unavailable, "sallyport agent list",
				"%w; the agent of a group has its key from a file: agents: {%s: {key: file:PATH}} in the home's sallyport.yaml", err, s.Agent)
		}
		return problem.Errorf(problem.Unavailable, Handing(s.GoingOn, f.Wanted), "%w", err)
	}
	return err
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
func filled(env []string, s Subject) (out []string, err error) {
	for _, v := range env {
		if from := referred(v); from != "" {
			name, _, _ := strings.Cut(v, "=")
			value, ok := s.Env[from]
			if !ok {
				return nil, problem.Errorf(problem.Usage, from+"=… "+s.Asking,
					"agents: %s: env: in sallyport.yaml gives %s the value of $%[3]s, and $%[3]s is not set in your environment", s.Agent, name, from)
			}
			v = name + "=" + value
		}
		out = append(out, v)
	}
	return out, nil
}
