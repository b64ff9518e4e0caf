package egress

import "strings"

// pathBytesMax bounds a path and its query.
const pathBytesMax = 16 << 10

// splitPath cuts the path and query of a request. It refuses what no client sends and servers read in several ways.
func splitPath(raw string) (path, query, why string) {
	if len(raw) > pathBytesMax {
		return "", "", "its path is longer than 16 KiB"
	}
	for i := range len(raw) {
		if c := raw[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '\\' {
			return "", "", "its path has a character that must be escaped"
		}
	}
	path, query, _ = strings.Cut(raw, "?")
	if path == "" {
		path = "/"
	}
	if path[0] != '/' || strings.HasPrefix(path, "//") {
		return "", "", "its path does not begin with one slash"
	}
	return path, query, ""
}

// cleanPath returns a path with its escapes resolved, for comparing with prefixes, or why two servers could read it as two paths: an
// escaped slash, backslash, percent sign or control character, an empty segment, a dot segment in any spelling.
func cleanPath(path string) (clean, why string) {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			if i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]) {
				return "", "its path has a broken escape"
			}
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			i += 2
			if c == '/' || c == '\\' || c == '%' || c == ';' || c < ' ' || c == 0x7f {
				return "", "its path hides a slash, a percent sign or a control character"
			}
		}
		b.WriteByte(c)
	}
	clean = b.String()
	if !strings.HasPrefix(clean, "/") {
		return "", "its path does not begin with one slash"
	}
	segments := strings.Split(clean[1:], "/")
	for i, s := range segments {
		if s == "" && i < len(segments)-1 {
			return "", "its path has an empty segment"
		}
		if s, _, _ = strings.Cut(s, ";"); s == "." || s == ".." { // some servers drop what stands behind ; in a segment
			return "", "its path has a dot segment"
		}
	}
	return clean, ""
}

// under reports whether a clean path is at or below one of the prefixes, by whole segments.
func under(clean string, prefixes []string) bool {
	for _, p := range prefixes {
		p = strings.TrimSuffix(p, "/")
		if rest, ok := strings.CutPrefix(clean, p); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// only reports whether a request is one of those that the route is for. A key opens more at an endpoint than its model: what others have
// asked with it, work that is done later and told to nobody. In a path of Only, * is any text in one segment that does not hold the
// character behind it.
func (r Route) only(method, clean string) bool {
	if len(r.Only) == 0 {
		return true
	}
	for _, o := range r.Only {
		before, after, star := strings.Cut(o, "*")
		rest, ok := strings.CutPrefix(method+" "+clean, before)
		if !star {
			ok = ok && rest == ""
		} else if ok {
			var name string
			name, ok = strings.CutSuffix(rest, after)
			ok = ok && name != "" && !strings.Contains(name, "/") && (after == "" || !strings.Contains(name, after[:1]))
		}
		if ok {
			return true
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	}
	return c - 'a' + 10
}

// plainParams keeps of a query what goes up a route. Anything else could be a key, ask for an answer without its usage, or say that the
// body is of another kind. What is kept stays as it was written.
func plainParams(query string) string {
	var kept strings.Builder
	for part := range cutParams(query) {
		name, value, _ := strings.Cut(strings.TrimLeft(part, "&;"), "=")
		if values, ok := params[name]; ok && (values == nil || oneOf(value, values)) {
			kept.WriteString(part)
		}
	}
	return strings.TrimLeft(kept.String(), "&;")
}

// params are those, by name, with the values that they may have; nil: any.
var params = map[string][]string{
	"beta": nil, "alt": {"sse", "json"}, "api-version": nil, "client_version": nil,
	"limit": nil, "after": nil, "after_id": nil, "before_id": nil, "pageSize": nil, "pageToken": nil, // of a list of models
}

// cutParams yields the parts of a query, each with the character before it.
func cutParams(query string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for query != "" {
			end := strings.IndexAny(query[1:], "&;") + 1
			if end == 0 {
				end = len(query)
			}
			if !yield(query[:end]) {
				return
			}
			query = query[end:]
		}
	}
}

func oneOf(s string, of []string) bool {
	for _, o := range of {
		if s == o {
			return true
		}
	}
	return false
}
