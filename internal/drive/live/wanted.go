package live

import (
	"slices"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
	"sallyport/internal/rule/credential"
)

// Wanted says what a person's surroundings are asked for before an agent can work.
type Wanted struct {
	Subject id.Subject // "" before there is one
	Agent   string
	Keys    []string // variables that may hold the key of its model
	Bases   []string // variables that may say that its model is elsewhere
	Env     []string // variables that the home's env: for it refers to
	Held    bool     // a key is there already, or none is needed
}

// Wanted says what the agent of a subject wants.
func (o Outfitter) Wanted(s Subject) (Wanted, error) {
	w := Wanted{Subject: s.ID, Agent: s.Agent, Held: true}
	known, named, err := o.Known(s.Agent)
	if err != nil || !named {
		return w, err
	}
	choice := o.Agency.Chosen(s.Agent)
	for _, v := range choice.Settings.Env {
		if name := referred(v); name != "" && !slices.Contains(w.Env, name) {
			w.Env = append(w.Env, name)
		}
	}
	if choice.Key == credential.Login { // no key is asked for: what is wrong with a login is said when it is used
		return w, nil
	}
	all := endpoints(known, choice, s)
	w.Held = len(all) == 0
	for _, at := range all {
		of := at.wanted(s, choice)
		if _, err := o.Keys.Has(string(s.ID), of); err == nil {
			w.Held = true
		}
		for _, n := range of.Variables() {
			if !slices.Contains(w.Keys, n) {
				w.Keys = append(w.Keys, n)
			}
		}
		for _, n := range at.Bases {
			if choice.Settings.Base == "" && choice.Key == "" && !slices.Contains(w.Bases, n) {
				w.Bases = append(w.Bases, n)
			}
		}
	}
	return w, nil
}

// Receive holds keys for a subject, those alone that its agent asks for.
func (o Outfitter) Receive(s Subject, keys credential.Keys) error {
	if len(keys) == 0 {
		return nil
	}
	w, err := o.Wanted(s)
	if err != nil {
		return err
	}
	for name := range keys {
		if !slices.Contains(w.Keys, name) {
			return problem.Errorf(problem.Usage, "sallyport agent list", "the agent %q asks for no key named %q", s.Agent, name)
		}
	}
	return o.Keys.Give(string(s.ID), keys)
}
