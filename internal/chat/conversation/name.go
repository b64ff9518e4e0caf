package conversation

import (
	"slices"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/pattern"
	"sallyport/internal/base/problem"
)

var nameGood = pattern.Of(`^[a-z][a-z0-9-]{0,31}$`)

// taken are names that mean something else where a channel's name may stand. An identity that begins with "agent:" is an agent.
var taken = []string{Terminal, Dev, "agent", "host", "home", "all"}

// ParseName returns s if a channel can be called so. Errors: problem.Usage.
func ParseName(s string) (string, error) {
	switch {
	case slices.Contains(taken, s):
		return "", problem.Errorf(problem.Usage, "sallyport channel add --help", "%q is a word of the host's own; a channel needs another name", s)
	case !nameGood().MatchString(s):
		return "", problem.Errorf(problem.Usage, "sallyport channel list",
			"%q is no name of a channel: at most 32 lower-case letters, digits and dashes, a letter first", inert.Short(s, 40))
	}
	return s, nil
}
