package workspace

import (
	"strings"
	"testing"

	"sallyport/internal/path/layer"
)

// FuzzMarksAreExactNames holds the decoding of attribute lists: only the exact names mean anything.
func FuzzMarksAreExactNames(f *testing.F) {
	for _, list := range []string{
		"", "user.overlay.opaque\x00", "user.overlay.overlay.opaque\x00", "user.overlay.opaque", "user.overlay.opaquex\x00",
		"user.mime\x00user.overlay.whiteout\x00", "trusted.overlay.opaque\x00", "\x00\x00", "user.overlay.metacopy\x00user.overlay.redirect\x00",
	} {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		m := decodeMarks(list)
		has := func(name string) bool {
			for _, n := range strings.Split(string(list), "\x00") {
				if n == name {
					return true
				}
			}
			return false
		}
		if (m.opaque != "") != has("user.overlay.opaque") || m.whiteout != has("user.overlay.whiteout") ||
			m.redirect != has("user.overlay.redirect") || m.metacopy != has("user.overlay.metacopy") {
			t.Errorf("%q decodes to %+v", list, m)
		}
	})
}

// FuzzPlainPathsStayBelow holds that a joined path of a tree never leaves the top.
func FuzzPlainPathsStayBelow(f *testing.F) {
	for _, p := range []string{"a", "../x", "a/../../x", "/etc", "a//b", ".", "..", ".git/x", "a/b/c", ""} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if !layer.PlainPath(p) {
			return
		}
		for _, part := range strings.Split(p, "/") {
			if part == ".." || part == "" || part == "." {
				t.Errorf("%q passes", p)
			}
		}
	})
}
