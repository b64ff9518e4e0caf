package cli

import (
	"cmp"
	"net"
	"slices"
	"strconv"

	"sallyport/internal/api"
	"sallyport/internal/inert"
)

// askedShown bounds what a story lists of a change's requests to the network.
const askedShown = 30

// usual reports whether a notice tells of a request to the network that was met: it is shown with the agent's output.
func usual(n api.Notice) bool {
	return n.Kind == api.NoticeEgress && n.Asked != nil && n.Asked.Verdict == api.AskedAllowed
}

// network lists what a change asked of the network, what was refused first.
func (s sheet) network(asked []api.Asked) {
	if len(asked) == 0 {
		return
	}
	s.line("")
	s.line("what it asked of the network:")
	order := []string{api.AskedRefused, api.AskedFailed, api.AskedAllowed}
	asked = slices.Clone(asked)
	slices.SortStableFunc(asked, func(a, b api.Asked) int {
		return cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict))
	})
	for i, a := range asked {
		if i == askedShown {
			s.line("  and %s more", count(len(asked)-i, "line"))
			return
		}
		s.line("  %s", s.request(a))
	}
}

// request is one kind of request in a line: the verdict, where to, how, how often, why.
func (s sheet) request(a api.Asked) string {
	verdict := inert.Line(a.Verdict)
	switch a.Verdict {
	case api.AskedAllowed:
		verdict = s.green(verdict)
	case api.AskedRefused:
		verdict = s.red(verdict)
	default:
		verdict = s.yellow(verdict)
	}
	to := a.Host
	switch {
	case a.Route != "":
		to = "its " + a.Route
	case a.Host == "" && a.Method == "":
		to = "other hosts"
	case a.Port != 0:
		to = net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
	}
	line := verdict + " " + clip(inert.Line(to), 120)
	if a.Method != "" {
		line += " (" + inert.Line(a.Method) + ")"
	}
	if a.Count > 1 {
		line += ", " + strconv.FormatInt(a.Count, 10) + " times"
	}
	if a.Why != "" {
		line += ": " + clip(inert.Line(a.Why), 200)
	}
	return line
}
