package secret

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"sallyport/internal/base/inert"
)

// knownRule is the kind of a secret that the host knows.
const knownRule = "known-secret"

// Names of environment variables by which a value is taken for a secret: what they end in.
var secretNames = []string{"_KEY", "_TOKEN", "_SECRET", "PASSWORD", "_PASS", "_PASSWD", "_CREDENTIALS", "_DSN", "DATABASE_URL"}

// knownMin is how long a value must be to be held: shorter ones stand in ordinary text by chance.
const knownMin = 12

// Environment returns the values of an environment (of "NAME=value") that the host must not show: those whose name
// says so, as *_TOKEN or *PASSWORD, and that could not be a word or a path: at least 12 characters, letters and digits both.
func Environment(environ []string) []Value {
	var held []Value
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		name = strings.ToUpper(name)
		if slices.ContainsFunc(secretNames, func(end string) bool { return strings.HasSuffix(name, end) }) && telling(value) {
			held = append(held, Hold(value))
		}
	}
	return held
}

// telling reports whether a value says something wherever it stands.
func telling(value string) bool {
	const letters, digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	return len(value) >= knownMin && value[0] != '/' && value[0] != '~' && value[0] != '.' &&
		strings.ContainsAny(value, letters) && strings.ContainsAny(value, digits)
}

// revealed gives what may be searched for; sorted, so that the order does not count.
func revealed(known []Value) []string {
	var out []string
	for _, v := range known {
		if p := v.Reveal(); len(p) >= knownMin {
			out = append(out, spellings(p)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// spellings are a value as it is, and as logs, programs and JSON write it, who escape a part of it.
func spellings(value string) []string {
	quoted := strconv.Quote(value)
	all := []string{value, quoted[1 : len(quoted)-1], inert.Line(value)}
	for _, html := range []bool{false, true} {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(value) == nil {
			text := strings.TrimSuffix(b.String(), "\n")
			all = append(all, text[1:len(text)-1])
		}
	}
	return all
}

// knownNow are the secrets that the host knows at the moment, in every spelling.
func (s *Scanner) knownNow() []string { return slices.Concat(s.known, s.cfg.Held.is().plain) }

// knownIn finds them.
func (s *Scanner) knownIn(text string) []hit {
	var hits []hit
	for _, k := range s.knownNow() {
		lines := lineCounter{text: text}
		for at := 0; ; {
			i := strings.Index(text[at:], k)
			if i < 0 {
				break
			}
			at += i
			line := lines.before(at) + 1
			hits = append(hits, hit{rule: knownRule, severity: Critical, line: line, last: line + strings.Count(k, "\n"), at: at, secret: k, own: true})
			at += len(k)
		}
	}
	return hits
}
