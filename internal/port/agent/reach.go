package agent

import (
	"net/url"
	"slices"
	"strings"
)

// Reach says what k gets of the outside by a home's settings, whichever key is found: at which hosts its model may be, and in words what opens it
// there. named says that the home says where its key is. Neither enters a sandbox.
func (k Known) Reach(s Settings, named bool) (hosts, keys []string) {
	s.Login = s.Login && k.Login != nil
	all := k.Endpoints
	if s.Login || s.Wire != "" || len(all) == 0 {
		all = nil
		if e := k.Endpoint(s); e != nil {
			all = []Endpoint{*e}
		}
	}
	add := func(to *[]string, what string) {
		if what != "" && !slices.Contains(*to, what) {
			*to = append(*to, what)
		}
	}
	for _, e := range all {
		e = *e.by(Settings{Base: s.Base})
		if at, err := url.Parse(e.Base); err == nil {
			add(&hosts, at.Host)
		}
		switch {
		case s.Login:
			add(&keys, "the login of "+k.Login.Of)
		case named:
			add(&keys, "the key that sallyport.yaml names for "+k.Name)
		case len(e.Keys) > 0:
			add(&keys, "the key that people keep in "+strings.Join(e.Keys, " or "))
		}
	}
	return hosts, keys
}
