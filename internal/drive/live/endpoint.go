package live

import (
	"slices"

	"sallyport/internal/port/agent"
	"sallyport/internal/rule/credential"
)

// place is an endpoint that an agent may have, where the home or the person say it is.
type place struct{ agent.Endpoint }

// in are the settings with which an agent has its model there.
func (p place) in(s agent.Settings) agent.Settings {
	s.Wire, s.Base = p.Wire, p.Base
	return s
}

// wanted is the key of the endpoint, as the home says where it is or as people keep it.
func (p place) wanted(s Subject, choice Choice) credential.Wanted {
	return credential.Wanted{Agent: s.Agent, Reference: choice.Key, Names: p.Keys, Keyless: p.Keyless && !s.Keyed}
}

// endpoints are the places where an agent's model may be, the first whose key is there counts. The home's word on where it is goes
// before the person's environment, which moves only what a key of that environment opens.
func endpoints(known agent.Known, choice Choice, s Subject) (out []place) {
	at := choice.Settings
	wires := []agent.Wire{at.Wire}
	if at.Wire == "" {
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
		at.Wire, at.Base = w, choice.Settings.Base
		e := known.Endpoint(at)
		if e == nil {
			continue
		}
		if at.Base == "" && choice.Key == "" {
			for _, name := range e.Bases {
				if base := s.Bases[name]; base != "" {
					at.Base = base
					e = known.Endpoint(at)
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

// Handing is the command that hands over a missing key: the variable in front of one that takes it.
func Handing(command string, w credential.Wanted) string {
	if names := w.Variables(); len(names) > 0 {
		return names[0] + "=… " + command
	}
	return command
}
