// Package yamltext says which YAML is taken from a file that a stranger may have written: text that
// shows what it means, small and flat enough to be parsed at once.
package yamltext

import (
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"sallyport/internal/base/inert"
)

// Unreadable says why data is not given to a parser at all, and at which byte; "" if it may be. The
// parser's effort grows with the square of what is written, and with the depth of nesting.
func Unreadable(data []byte, bytesMax, depthMax int) (why string, at int) {
	if len(data) > bytesMax {
		return fmt.Sprintf("the file has %d bytes; %d is the limit", len(data), bytesMax), 0
	}
	depth, dashes := 0, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return "it is not UTF-8", i
		case r == '\n' || r == '\t' || r == '\r' && i+1 < len(data) && data[i+1] == '\n':
		case r == 0xfeff && i == 0:
			return "it begins with a byte order mark; save it without", i
		case r < ' ' || r == 0x7f || inert.Bidi(r):
			return fmt.Sprintf("it holds %U, an invisible character", r), i
		case r == '[' || r == '{':
			depth++
		case (r == ']' || r == '}') && depth > 0:
			depth--
		}
		switch {
		case r == '-' && i+1 < len(data) && data[i+1] == ' ': // - - - x is a list of lists of lists
			dashes++
		case r != ' ':
			dashes = 0
		}
		if depth > depthMax || dashes > depthMax {
			return fmt.Sprintf("lists or groups are nested more than %d deep", depthMax), i
		}
		i += size
	}
	return "", 0
}

// Foreign names what makes a node mean something else than it shows; "" if nothing does.
func Foreign(n ast.Node) string {
	switch n.(type) {
	case *ast.AnchorNode:
		return "an anchor (&)"
	case *ast.AliasNode:
		return "an alias (*)"
	case *ast.MergeKeyNode:
		return "a merge key (<<)"
	case *ast.TagNode:
		return "a tag (!)"
	case *ast.DirectiveNode:
		return "a directive (%)"
	}
	return ""
}
