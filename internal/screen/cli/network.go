package cli

import (
	"net"
	"strconv"

	"sallyport/internal/base/inert"
	"sallyport/internal/door/api"
)

// askedShown bounds what a story lists of each verdict.
const askedShown = 20

// usual reports whether a notice tells of a request to the network that was met: it is shown with the agent's output.
func usual(n api.Notice) bool {
	return n.Kind == api.NoticeEgress && n.Asked != nil && n.Asked.Verdict == api.AskedAllowed
}

// printNetwork lists what a change asked of the network, by what became of it.
func printNetwork(s sheet, asked []api.Asked) {
	for _, group := range []struct{ verdict, name, mark string }{
		{api.AskedRefused, "refused on the network", s.red("!")},
		{api.AskedFailed, "asked for on the network, which did not work", s.yellow("!")},
		{api.AskedAllowed, "asked for on the network", s.green("+")},
	} {
		var lines []string
		for _, a := range asked {
			if a.Verdict == group.verdict {
				lines = append(lines, request(a))
			}
		}
		if more := len(lines) - askedShown; more > 0 {
			lines = append(lines[:askedShown], "and "+count(more, "more line"))
		}
		s.list(group.name, lines, group.mark)
	}
}

// request is one kind of request in words: where to, how, how often, and why it was met as it was. They are not yet harmless.
func request(a api.Asked) string {
	to := a.Host
	switch {
	case a.Route != "":
		to = "its " + a.Route
	case a.Host == "" && a.Method == "":
		to = "other hosts"
	case a.Host == "":
		to = "the way out itself"
	case a.Port != 0:
		to = net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
	}
	if a.Method != "" {
		to += " (" + a.Method + ")"
	}
	if a.Count > 1 {
		to += ", " + strconv.FormatInt(a.Count, 10) + " times"
	}
	if a.Why != "" {
		to += ": " + a.Why
	}
	return to
}

// printReached says a notice of requests to the network.
func printReached(s sheet, a api.Asked) {
	s.rows("network: ", "       > ", inert.Line(a.Verdict+" "+request(a)))
}
