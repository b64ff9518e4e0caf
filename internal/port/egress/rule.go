package egress

import (
	"slices"
	"strings"

	"sallyport/internal/base/problem"
)

const (
	httpsPort = 443
	httpPort  = 80
)

// Bounds of what an owner writes.
const (
	rulesMax  = 500
	routesMax = 16
	itemsMax  = 64 // ports, methods or paths of one
)

// checked returns the rule in its one spelling, or says what is wrong with it as somebody wrote it.
func (r Rule) checked() (Rule, error) {
	name, below := strings.CutPrefix(r.Host, "*.")
	host, why := hostName(name)
	switch {
	case why != "":
		return r, r.wrong("%s", why)
	case len(r.Ports) > itemsMax || len(r.Methods) > itemsMax || len(r.Paths) > itemsMax:
		return r, r.wrong("it has more than %d ports, methods or paths", itemsMax)
	case slices.Contains(r.Ports, 0):
		return r, r.wrong("a port is a number from 1 to 65535")
	}
	if below {
		host = "*." + host
	}
	r.Host = host
	if why := badScope(r.Methods, r.Paths); why != "" {
		return r, r.wrong("%s", why)
	}
	return r, nil
}

func (r Rule) wrong(format string, args ...any) error {
	from := r.From
	if from == "" {
		from = "sallyport.yaml"
	}
	return problem.Errorf(problem.Usage, "sallyport run --help", "egress of %q (%s): "+format+
		"; write a name such as registry.npmjs.org or *.example.org", append([]any{r.Host, from}, args...)...)
}

func badScope(methods, paths []string) string {
	for _, m := range methods {
		if !token(m) || m != strings.ToUpper(m) || never(m) {
			return "a method is a word such as GET, and never CONNECT, TRACE or TRACK"
		}
	}
	for _, p := range paths {
		if _, query, why := splitPath(p); why != "" || query != "" || strings.HasSuffix(p, "?") {
			return "a path begins with one slash and has no query"
		}
		if clean, why := cleanPath(p); why != "" || clean != p {
			return "a path is written without escapes, empty and dot segments"
		}
	}
	return ""
}

// covers reports whether a rule is about a host.
func (r Rule) covers(host string) bool {
	if above, ok := strings.CutPrefix(r.Host, "*"); ok {
		return strings.HasSuffix(host, above) // which begins with a dot, and no host does
	}
	return r.Host == host
}

// opens reports whether a rule is about a port; usual is that of the way in which it was asked.
func (r Rule) opens(port, usual uint16) bool {
	if len(r.Ports) == 0 {
		return port == usual
	}
	return slices.Contains(r.Ports, port)
}

// admits reports whether a rule allows a method and path at its host.
func (r Rule) admits(method, path string) bool {
	if len(r.Methods) > 0 && !slices.Contains(r.Methods, method) {
		return false
	}
	if len(r.Paths) == 0 {
		return true
	}
	clean, why := cleanPath(path)
	return why == "" && under(clean, r.Paths)
}

// checked returns the route in its one spelling.
func (r Route) checked() (Route, error) {
	switch {
	case r.Name == "" || len(r.Name) > labelBytesMax || strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return r, r.wrong("its name has other characters than a to z, 0 to 9 and hyphen")
	case r.Base == nil || r.Base.Host == "" || r.Base.Hostname() == "" || r.Base.Scheme != "http" && r.Base.Scheme != "https":
		return r, r.wrong("its base is no http or https URL")
	case r.Base.User != nil || r.Base.Fragment != "" || r.Base.Opaque != "":
		return r, r.wrong("its base has a user name or a fragment")
	case len(r.Methods) == 0 || len(r.Paths) == 0:
		return r, r.wrong("it names no methods or no paths, and would open nothing")
	case len(r.Methods) > itemsMax || len(r.Paths) > itemsMax || len(r.Only) > itemsMax:
		return r, r.wrong("it has more than %d methods or paths", itemsMax)
	case r.Header != "" && (!token(r.Header) || r.Value.Empty() && r.Credential == nil), r.Header == "" && r.Credential != nil:
		return r, r.wrong("it has a header without a credential, or a malformed header")
	case strings.ContainsFunc(r.Value.Reveal(), func(c rune) bool { return c < ' ' || c >= 0x7f }):
		return r, r.wrong("its credential has a character that no header may have, such as a line break")
	case !oneOf(r.Wire, []string{"", wireResponses, wireChat, wireMessages, wireGemini}):
		return r, r.wrong("its wire %q is not known", r.Wire)
	}
	if why := badScope(r.Methods, r.Paths); why != "" {
		return r, r.wrong("%s", why)
	}
	return r, nil
}

func (r Route) wrong(format string, args ...any) error {
	return problem.Errorf(problem.Usage, "sallyport agent list", "the route %q: "+format+"; write its base as https://api.example.org/v1",
		append([]any{r.Name}, args...)...)
}

// checked returns the configuration in its one spelling.
func (c Config) checked() (Config, error) {
	if len(c.Rules) > rulesMax || len(c.Routes) > routesMax {
		return c, problem.Errorf(problem.Usage, "sallyport run --help",
			"a session may have %d egress rules and %d routes; write fewer hosts, or *.example.org for many", rulesMax, routesMax)
	}
	var err error
	c.Rules, c.Routes = slices.Clone(c.Rules), slices.Clone(c.Routes)
	for i := range c.Rules {
		if c.Rules[i], err = c.Rules[i].checked(); err != nil {
			return c, err
		}
	}
	for i, r := range c.Routes {
		if c.Routes[i], err = r.checked(); err != nil {
			return c, err
		}
		if slices.ContainsFunc(c.Routes[:i], func(o Route) bool { return o.Name == r.Name }) {
			return c, r.wrong("there are two of this name")
		}
	}
	c.Limits = c.Limits.filled()
	return c, nil
}
