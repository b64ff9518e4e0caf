// Package pattern compiles regular expressions when they are first used: every command starts with every package, and compiled at once
// ours alone were about a seventh of its start.
package pattern

import (
	"regexp"
	"sync"
)

// Of is the expression, compiled once, for whoever asks first. An expression that is none panics then.
func Of(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
