package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/inert"
)

// Lengths that every Linux file system holds, in bytes.
const (
	componentBytesMax = 255
	pathBytesMax      = 4096
)

// name judges a path as text, before anybody interprets it.
//
// What leads out or into a git directory, and what cannot be written down, is
// refused on every side. What is merely hostile to read is refused where it
// would exist afterwards: an agent may clean up an odd name, not make or keep one.
func (v *validator) name(c Change) {
	if why := clean(c.Path); why != "" {
		v.add(c.Path, Name, Critical, why, "use a plain relative path")
	}
	for _, part := range parts(c.Path) {
		if isGitDir(part) {
			v.add(c.Path, GitDir, Critical, fmt.Sprintf("%s is a spelling of .git on some file system", inert.Path(part)),
				"remove it; a change cannot touch the repository's own .git")
			break
		}
	}
	if !utf8.ValidString(c.Path) {
		v.add(c.Path, Name, Error, fmt.Sprintf("the name %s is not UTF-8", inert.Path(c.Path)), "give it a name in UTF-8")
	}
	if c.gone() || c.same() {
		return
	}
	for _, r := range c.Path {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			v.add(c.Path, Name, Error, fmt.Sprintf("the name %s holds %U, which changes how it is shown", inert.Path(c.Path), r),
				"give it a name without control and format characters")
			break
		}
	}
	if len(c.Path) > pathBytesMax {
		v.add(c.Path, Name, Error, fmt.Sprintf("the path has %d bytes; %d is the limit", len(c.Path), pathBytesMax), "use shorter names")
	}
	for _, part := range strings.Split(c.Path, "/") {
		if len(part) > componentBytesMax {
			v.add(c.Path, Name, Error, fmt.Sprintf("a component has %d bytes; %d is the limit", len(part), componentBytesMax), "use shorter names")
			break
		}
	}
}

// NameFault says why no side of a change may have a path, whatever stands there; "" if one may. The path may come from anybody.
func NameFault(p string) string {
	if why := clean(p); why != "" {
		return why
	}
	if i := slices.IndexFunc(parts(p), isGitDir); i >= 0 {
		return fmt.Sprintf("%s is a spelling of .git on some file system", inert.Path(parts(p)[i]))
	}
	if !utf8.ValidString(p) {
		return "the name is not UTF-8"
	}
	return ""
}

// clean says why a path, in either reading of its backslashes, is not a plain path below the top.
func clean(p string) string {
	for _, r := range readings(p) {
		switch {
		case r == "":
			return "the path is empty"
		case r[0] == '/':
			return "the path is absolute"
		case strings.IndexByte(r, 0) >= 0:
			return "the path holds a zero byte"
		}
		for _, part := range strings.Split(r, "/") {
			switch part {
			case "..":
				return `the path holds ".."`
			case "", ".":
				return "the path is not clean: it holds an empty component or a single dot"
			}
		}
	}
	return ""
}

// parts returns the components of a path, cut at backslashes too (SM-074).
func parts(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' })
}

// isGitDir reports whether some file system takes a component for .git: without regard
// to case; HFS+ leaves out some invisible characters; NTFS cuts dots and spaces at the
// end, and names the folder itself in a stream (.git::$INDEX_ALLOCATION) or short (git~1).
func isGitDir(part string) bool {
	s := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, part)
	s, _, _ = strings.Cut(s, ":")
	s = strings.TrimRight(s, ". ")
	if s == ".git" {
		return true
	}
	digits, short := strings.CutPrefix(s, "git~")
	return short && digits != "" && strings.Trim(digits, "0123456789") == ""
}
