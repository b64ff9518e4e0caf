package checkpoint

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/internal/base/inert"
)

// holdable reports whether git lets a path into a tree and out of it again. It is a
// little stricter than git: a component that some file system takes for .git is none.
// What is left out here is named by policy (SV-064).
func holdable(path string) bool {
	if strings.IndexByte(path, 0) >= 0 {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || gitDir(part) {
			return false
		}
	}
	return true
}

// gitDir reports whether HFS+, NTFS or a file system without case reads part as .git. A
// backslash separates on NTFS, a colon begins the name of a stream.
func gitDir(part string) bool {
	for name := range strings.FieldsFuncSeq(part, func(r rune) bool { return r == '\\' }) {
		name, _, _ = strings.Cut(name, ":")
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return unicode.ToLower(r)
		}, name)
		name = strings.TrimRight(name, ". ")
		if name == ".git" {
			return true
		}
		if digits, ok := strings.CutPrefix(name, "git~"); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return false
}

// written returns a path as violations write it down.
func written(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return inert.Line(path)
}
