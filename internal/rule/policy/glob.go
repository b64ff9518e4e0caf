package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of one glob.
const (
	GlobBytesMax        = 1000
	globAlternativesMax = 256 // what its braces expand to: each is matched on its own
)

// CheckGlob says in one sentence why a glob cannot be used; nil if it can.
func CheckGlob(pattern string) error {
	_, err := compile(pattern)
	return err
}

// glob is a pattern that was found to be usable.
type glob struct {
	text  string // as written, for messages
	clean string
	plain bool // no wildcards: compare bytes
	below bool // its last component is plain or ends in a slash: it covers all below
}

const meta = `*?[{\`

func compile(pattern string) (glob, error) {
	clean := pattern
	for strings.HasPrefix(clean, "./") {
		clean = strings.TrimLeft(clean[2:], "/")
	}
	below := strings.HasSuffix(clean, "/")
	clean = strings.TrimSuffix(clean, "/")
	switch {
	case pattern == "":
		return glob{}, fmt.Errorf("a glob is empty; leave the entry out, or write . for everything")
	case len(pattern) > GlobBytesMax:
		return glob{}, fmt.Errorf("glob %.40q… is longer than %d bytes", pattern, GlobBytesMax)
	case !utf8.ValidString(pattern):
		return glob{}, fmt.Errorf("glob %q is not UTF-8", pattern)
	case strings.ContainsAny(pattern, "\x00\n"):
		return glob{}, fmt.Errorf("glob %q holds a newline or a zero byte", pattern)
	case pattern[0] == '/':
		return glob{}, fmt.Errorf("glob %q is absolute; write it relative to the top of the repository", pattern)
	case pattern[0] == '!':
		return glob{}, fmt.Errorf(`glob %q is a negation, which does not exist here; a name that begins with ! is written \!`, pattern)
	case clean == "" || clean == ".":
		return glob{text: pattern, clean: "**"}, nil
	}
	for _, part := range strings.Split(clean, "/") {
		if part == "" || part == "." || part == ".." {
			return glob{}, fmt.Errorf("glob %q has the component %q, which no path has", pattern, part)
		}
	}
	if !doublestar.ValidatePattern(clean) {
		return glob{}, fmt.Errorf(`glob %q is not well-formed: a [, { or \ is not closed`, pattern)
	}
	if alternatives(clean) > globAlternativesMax {
		return glob{}, fmt.Errorf("glob %q expands to more than %d alternatives", pattern, globAlternativesMax)
	}
	last := clean[strings.LastIndexByte(clean, '/')+1:]
	return glob{
		text:  pattern,
		clean: clean,
		plain: !strings.ContainsAny(clean, meta),
		below: below || !strings.ContainsAny(last, meta),
	}, nil
}

// alternatives bounds from above what a pattern's braces expand to.
func alternatives(pattern string) int {
	product := 1
	var open []int // commas seen in each open brace
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			open = append(open, 0)
		case ',':
			for k := range open {
				open[k]++
			}
		case '}':
			if n := len(open); n > 0 {
				product *= open[n-1] + 1
				open = open[:n-1]
			}
		}
		if product > globAlternativesMax {
			return product
		}
	}
	for _, commas := range open { // a brace inside [] may stay open
		product *= commas + 1
	}
	return product
}

// match reports whether path is named; with strict, also when only a folder above it is.
func (g glob) match(path string, strict bool) bool {
	if g.plain {
		return path == g.clean || strings.HasPrefix(path, g.clean) && path[len(g.clean)] == '/'
	}
	if doublestar.MatchUnvalidated(g.clean, path) {
		return true
	}
	if !g.below && !strict {
		return false
	}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' && doublestar.MatchUnvalidated(g.clean, path[:i]) {
			return true
		}
	}
	return false
}

// globs is one list of a policy.
type globs []glob

// allow reports whether every reading of path is named.
func (gs globs) allow(path string) bool {
	for _, p := range readings(path) {
		named := false
		for _, g := range gs {
			if g.match(p, false) {
				named = true
				break
			}
		}
		if !named {
			return false
		}
	}
	return true
}

// forbid returns the first glob that names any reading of path or a folder above it.
func (gs globs) forbid(path string) (string, bool) {
	for _, p := range readings(path) {
		for _, g := range gs {
			if g.match(p, true) {
				return g.text, true
			}
		}
	}
	return "", false
}

// readings returns a path as it is, and as a system with backslashes reads it.
func readings(path string) []string {
	if strings.IndexByte(path, '\\') < 0 {
		return []string{path}
	}
	return []string{path, strings.ReplaceAll(path, `\`, "/")}
}
