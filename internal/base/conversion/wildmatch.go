package conversion

import "strings"

// What a match of a part of a pattern says of the whole, as in git's wildmatch.c.
const (
	matched = iota
	unmatched
	abortAll        // no other place for a star helps
	abortToStarStar // only another place for a double star helps
)

// matcher matches with at most so many steps: a pattern can be written that takes for ever.
type matcher struct {
	fold  bool // capitals are as small letters (core.ignoreCase)
	steps int  // that are left; below zero nothing is known
}

const (
	// stepsMax is how many characters are compared for one verdict: about two seconds.
	stepsMax = 200_000_000
	// stepsOfOne is what an attribute that is taken counts as.
	stepsOfOne = 20
)

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func (m *matcher) folded(c byte) byte {
	if m.fold {
		return lower(c)
	}
	return c
}

// same compares two texts as names of files.
func (m *matcher) same(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if m.folded(a[i]) != m.folded(b[i]) {
			return false
		}
	}
	return true
}

// at is a character of a pattern; 0 past its end, as in C.
func at(p string, i int) byte {
	if i < len(p) {
		return p[i]
	}
	return 0
}

// wild matches a whole text. Where paths counts, a single star and a question mark stay within a folder.
func (m *matcher) wild(pattern, text string, paths bool) int {
	p, t := 0, 0
	for ; p < len(pattern); p, t = p+1, t+1 {
		if m.steps--; m.steps < 0 {
			return abortAll
		}
		if t == len(text) && pattern[p] != '*' {
			return abortAll
		}
		c := m.folded(at(text, t))
		switch pc := m.folded(pattern[p]); pc {
		case '?':
			if paths && c == '/' {
				return unmatched
			}
		case '*':
			return m.star(pattern, text, p, t, paths)
		case '[':
			in, end := m.class(pattern, p, c)
			if end < 0 {
				return abortAll
			}
			if p = end; !in || paths && c == '/' {
				return unmatched
			}
		case '\\':
			if p++; c != at(pattern, p) {
				return unmatched
			}
		default:
			if c != pc {
				return unmatched
			}
		}
	}
	if t < len(text) {
		return unmatched
	}
	return matched
}

// star matches from a star at p on.
func (m *matcher) star(pattern, text string, p, t int, paths bool) int {
	begins := p == 0 || pattern[p-1] == '/'
	stars := 0
	for p < len(pattern) && pattern[p] == '*' {
		p, stars = p+1, stars+1
	}
	rest := pattern[p:]
	slashes := !paths
	if paths && stars > 1 && begins && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`)) {
		if rest != "" && rest[0] == '/' && m.wild(rest[1:], text[t:], paths) == matched {
			return matched
		}
		slashes = true
	}
	switch {
	case rest == "" && (slashes || !strings.Contains(text[t:], "/")):
		return matched
	case rest == "":
		return unmatched
	case !slashes && rest[0] == '/':
		i := strings.IndexByte(text[t:], '/')
		if i < 0 {
			return unmatched
		}
		return m.wild(rest[1:], text[t+i+1:], paths)
	}
	for ; t < len(text); t++ {
		if m.steps--; m.steps < 0 {
			return abortAll
		}
		switch got := m.wild(rest, text[t:], paths); {
		case got != unmatched:
			if !slashes || got != abortToStarStar {
				return got
			}
		case !slashes && text[t] == '/':
			return abortToStarStar
		}
	}
	return abortAll
}

// classes are the named ones, of ASCII.
var classes = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < 32 || c == 127 },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > 32 && c < 127 },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c >= 32 && c < 127 },
	"punct":  func(c byte) bool { return c > 32 && c < 127 && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= lower(c) && lower(c) <= 'f' },
}

func isAlpha(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// class reports whether c is in the set that begins at p, and where that ends; -1 for one that is malformed.
func (m *matcher) class(pattern string, p int, c byte) (in bool, end int) {
	p++
	negated := at(pattern, p) == '!' || at(pattern, p) == '^'
	if negated {
		p++
	}
	for first, previous := true, byte(0); first || at(pattern, p) != ']'; first = false {
		if m.steps--; m.steps < 0 {
			return false, -1
		}
		pc := at(pattern, p)
		switch {
		case pc == 0:
			return false, -1
		case pc == '\\':
			p++
			if pc = at(pattern, p); pc == 0 {
				return false, -1
			}
			in = in || c == pc
		case pc == '-' && previous != 0 && at(pattern, p+1) != 0 && at(pattern, p+1) != ']':
			p++
			if pc = at(pattern, p); pc == '\\' {
				p++
				if pc = at(pattern, p); pc == 0 {
					return false, -1
				}
			}
			in = in || previous <= c && c <= pc
			if m.fold && 'a' <= c && c <= 'z' {
				capital := c - 'a' + 'A'
				in = in || previous <= capital && capital <= pc
			}
			pc = 0
		case pc == '[' && at(pattern, p+1) == ':':
			length := strings.IndexByte(pattern[p+2:], ']')
			if length < 0 {
				return false, -1
			}
			name := pattern[p+2 : p+2+length]
			if !strings.HasSuffix(name, ":") {
				in = in || c == '['
				break
			}
			is := classes[strings.TrimSuffix(name, ":")]
			if is == nil {
				return false, -1
			}
			in = in || is(c) || m.fold && name == "upper:" && is(c-'a'+'A')
			p, pc = p+2+length, 0
		default:
			in = in || c == pc
		}
		previous = pc
		p++
	}
	return in != negated, p
}
