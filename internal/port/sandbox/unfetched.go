package sandbox

import (
	"slices"
	"strings"
)

// Unfetched is a kind of thing that a program of a sandbox could not fetch, and what fetches it before the program runs.
type Unfetched struct {
	What  string // Go modules
	Setup string // a shell command for --setup
	Then  string // what the program itself needs as well, to find it; may be empty
	says  []string
}

// unfetched is what tools say when they want something from a registry that they cannot reach, most of them because a profile told
// them so. A phrase is one that a tool says for no other reason.
var unfetched = []Unfetched{
	{"Go modules", "go mod download", "", []string{
		"module lookup disabled by GOPROXY=off", `Get "https://proxy.golang.org/`,
	}},
	{"npm packages", "npm ci", "", []string{
		"code ENOTCACHED", "EAI_AGAIN registry.npmjs.org", "ENOTFOUND registry.npmjs.org", "ECONNREFUSED registry.npmjs.org",
	}},
	{"Python packages", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
		"git has to ignore .venv, and the check has to use .venv/bin", []string{
			"(from versions: none)", "WARNING: Retrying (Retry(total=",
		}},
	{"Rust crates", "cargo fetch", "", []string{
		"Could not resolve host: index.crates.io", "failed to download from `https://", "Unable to update registry `crates-io`",
		"you're using offline mode (--offline)",
	}},
}

// UnfetchedIn looks in a program's output for what it could not fetch; nil if nothing there says so. Anybody can write these phrases: what
// is returned is chosen by them, and holds none of them.
func UnfetchedIn(output string) *Unfetched {
	for i, u := range unfetched {
		if slices.ContainsFunc(u.says, func(phrase string) bool { return strings.Contains(output, phrase) }) {
			return &unfetched[i]
		}
	}
	return nil
}

// offline is what programs say, in small letters, when they find no network.
var offline = []string{
	"could not resolve", "couldn't resolve", "couldn't connect", "could not connect", "failed to connect", "unable to connect", "connection refused",
	"name resolution", "name or service not known", "no such host", "network is unreachable", "network is down", "could not reach",
	"enotfound", "eai_again", "econnrefused", "enetunreach", "enotcached", "offline",
}

// Offline reports whether a program's output speaks of a network that it did not find.
func Offline(output string) bool {
	small := strings.ToLower(output)
	return UnfetchedIn(output) != nil || slices.ContainsFunc(offline, func(phrase string) bool { return strings.Contains(small, phrase) })
}

// String says what a person can do about it.
func (u *Unfetched) String() string {
	said := "its output speaks of " + u.What + " that it could not fetch; --setup '" + u.Setup + "' fetches them before the check"
	if u.Then != "" {
		said += " (" + u.Then + ")"
	}
	return said
}
