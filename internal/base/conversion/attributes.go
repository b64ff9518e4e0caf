package conversion

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/base/inert"
)

// Source is one file of attributes.
type Source struct {
	Name   string // for a person
	Folder string // that its patterns begin at, "" = the top
	Text   string
	Macros bool // it may define them: it is at the top, or of no tree
}

// attribute is one word of a line.
type attribute struct {
	name  string
	value string // "set", "unset", "unspecified", or what stands after =
	plain bool   // value is one of the three words
}

// line is a pattern, or a macro, and what it gives.
type line struct {
	pattern  string
	macro    string // its name; then there is no pattern
	anywhere bool   // the pattern has no slash: it is of a name in any folder
	folders  bool   // it ends in a slash: it is of no file
	gives    []attribute
}

// file is a source that was read.
type file struct {
	Source
	lines []line
}

const (
	blank   = " \t\r\n"
	lineMax = 2048 // bytes of a line that newer versions of git leave out and older ones read

	FilesMax = 2_000   // files of attributes that are read of a tree
	TextMax  = 1 << 20 // bytes of them together, and of any other file of attributes
	linesMax = 20_000  // lines of them together
)

// parse reads a file of attributes as git does. What is unusual, and what versions of git read in different ways, is an error.
func parse(s Source) (file, error) {
	f := file{Source: s}
	if strings.IndexByte(s.Text, 0) >= 0 {
		return f, fmt.Errorf("%s has a NUL byte: git would not read all of it", inert.Path(s.Name))
	}
	if strings.HasPrefix(s.Text, "\ufeff") {
		return f, fmt.Errorf("%s begins with a byte order mark: git may read its first line with it", inert.Path(s.Name))
	}
	number := 0
	for text := range strings.SplitSeq(s.Text, "\n") {
		if number++; number > linesMax {
			return f, fmt.Errorf("%s has more than %d lines", inert.Path(s.Name), linesMax)
		}
		if trimmed := strings.TrimLeft(text, blank); strings.HasPrefix(trimmed, `"`) && odd(trimmed) {
			return f, fmt.Errorf("line %d of %s begins with a quoted pattern that holds an escape other than \\\" and \\\\", number, inert.Path(s.Name))
		}
		if len(text) >= lineMax-1 && !strings.HasPrefix(strings.TrimLeft(text, blank), "#") {
			return f, fmt.Errorf("line %d of %s has more than %d bytes: git may leave it out", number, inert.Path(s.Name), lineMax-2)
		}
		l, ok := parseLine(text, s.Macros)
		if slices.ContainsFunc(l.gives, func(a attribute) bool { return strings.HasPrefix(a.name, "builtin_") }) {
			return f, fmt.Errorf("line %d of %s names an attribute builtin_…: git may leave the line out", number, inert.Path(s.Name))
		}
		if ok {
			f.lines = append(f.lines, l)
		}
	}
	return f, nil
}

// parseLine reads one line; false for one that gives nothing.
func parseLine(text string, macros bool) (line, bool) {
	text = strings.TrimLeft(text, blank)
	if text == "" || text[0] == '#' {
		return line{}, false
	}
	name, rest, quoted := unquote(text)
	if !quoted {
		end := strings.IndexAny(text+" ", blank)
		name, rest = text[:end], text[end:]
	}
	l := line{}
	const macro = "[attr]"
	if len(name) > len(macro) && strings.HasPrefix(name, macro) {
		l.macro = strings.TrimLeft(name[len(macro):], blank)
		if end := strings.IndexAny(l.macro, blank); end >= 0 {
			l.macro = l.macro[:end]
		}
		if !macros || !named(l.macro) {
			return line{}, false
		}
	} else {
		if name == "" || name[0] == '!' {
			return line{}, false
		}
		l.pattern, l.folders = strings.CutSuffix(name, "/")
		l.anywhere = !strings.Contains(l.pattern, "/")
	}
	for word := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune(blank, r) }) {
		a, ok := parseAttribute(word)
		if !ok {
			return line{}, false
		}
		l.gives = append(l.gives, a)
	}
	return l, true
}

func parseAttribute(word string) (attribute, bool) {
	name, value, valued := strings.Cut(word, "=")
	a := attribute{name: name, value: "set", plain: true}
	switch {
	case word[0] == '-' || word[0] == '!':
		a.name, a.value = name[1:], "unset"
		if word[0] == '!' {
			a.value = "unspecified"
		}
	case valued:
		a.value, a.plain = value, false
	}
	return a, named(a.name)
}

// named reports whether git takes a name for an attribute's.
func named(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	return s != "" && s[0] != '-' && strings.Trim(s, letters) == ""
}

// odd reports whether a line has an escape that stands for anything but a quote, a backslash or a byte beyond ASCII. git takes
// a control byte that is written so for the end of a pattern, or of a name.
func odd(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch next := at(text, i+1); {
		case next == '"' || next == '\\':
			i++
		case (next == '2' || next == '3') && octal(at(text, i+2)) && octal(at(text, i+3)):
			i += 3
		default:
			return true
		}
	}
	return false
}

// unquote reads a pattern in quotes, as git writes names; false if it is none.
func unquote(text string) (name, rest string, ok bool) {
	if text[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case at(text, i+1) == '"' || at(text, i+1) == '\\':
			b.WriteByte(text[i+1])
			i++
		case '2' <= at(text, i+1) && at(text, i+1) <= '3' && octal(at(text, i+2)) && octal(at(text, i+3)):
			b.WriteByte((text[i+1]-'0')<<6 | (text[i+2]-'0')<<3 | (text[i+3] - '0'))
			i += 3
		default:
			return "", "", false
		}
	}
	return "", "", false
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// applies reports whether a line is about the file at p.
func (l *line) applies(m *matcher, folder, p string) bool {
	if m.steps--; m.steps < 0 || l.macro != "" || l.folders {
		return false
	}
	if l.anywhere {
		return m.wild(l.pattern, path.Base(p), false) == matched
	}
	if folder != "" {
		if len(p) <= len(folder) || p[len(folder)] != '/' || !m.same(p[:len(folder)], folder) {
			return false
		}
		p = p[len(folder)+1:]
	}
	m.steps -= len(l.pattern)
	pattern := strings.TrimPrefix(l.pattern, "/")
	literal := strings.IndexAny(pattern+"*", `*?[\`) // git compares what is no glob first, and so a double star after it begins a pattern
	if literal > len(p) || !m.same(pattern[:literal], p[:literal]) {
		return false
	}
	if pattern, p = pattern[literal:], p[literal:]; pattern == "" && p == "" {
		return true
	}
	return m.wild(pattern, p, true) == matched
}

// Set is every file of attributes that counts in a tree, and what is configured.
type Set struct {
	above   []file // .git/info/attributes
	tree    map[string]file
	below   []file // of the person, then of the system
	macros  map[string][]attribute
	config  config
	matcher *matcher
}

// given is what a path has of an attribute, and where that is said.
type given struct {
	value, source string
	plain         bool
}

// of returns what a path has of every attribute.
func (s *Set) of(p string) map[string]given {
	all := map[string]given{}
	for _, f := range s.above {
		s.fill(all, f, p)
	}
	for folder := up(p); ; folder = up(folder) {
		if f, ok := s.tree[folder]; ok {
			s.fill(all, f, p)
		}
		if folder == "" {
			break
		}
	}
	for _, f := range s.below {
		s.fill(all, f, p)
	}
	return all
}

// up is the folder that a path lies in; "" = the top.
func up(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// fill takes from a file, the last line first, what nothing before it has said.
func (s *Set) fill(all map[string]given, f file, p string) {
	for i := range slices.Backward(f.lines) {
		if s.matcher.steps < 0 {
			return
		}
		if l := &f.lines[i]; l.applies(s.matcher, f.Folder, p) {
			s.take(all, l.gives, f.Name)
		}
	}
}

func (s *Set) take(all map[string]given, gives []attribute, source string) {
	for _, a := range slices.Backward(gives) {
		s.matcher.steps -= stepsOfOne
		if _, known := all[a.name]; known {
			continue
		}
		all[a.name] = given{a.value, source, a.plain}
		if a.plain && a.value == "set" {
			s.take(all, s.macros[a.name], source)
		}
	}
}

// learn collects the macros: of two with one name, the one that counts more.
func (s *Set) learn() {
	s.macros = map[string][]attribute{}
	files := slices.Clone(s.above)
	if top, ok := s.tree[""]; ok {
		files = append(files, top)
	}
	for _, f := range append(files, s.below...) {
		for _, l := range slices.Backward(f.lines) {
			if _, known := s.macros[l.macro]; l.macro != "" && !known {
				s.macros[l.macro] = l.gives
			}
		}
	}
	if _, known := s.macros["binary"]; !known {
		s.macros["binary"] = []attribute{{"diff", "unset", true}, {"merge", "unset", true}, {"text", "unset", true}}
	}
}
