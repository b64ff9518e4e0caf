package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"sallyport/internal/inert"
	"sallyport/internal/problem"
)

// depthMax bounds nesting; the files need three.
const depthMax = 32

// findingsShown is how many things that are wrong a message names.
const findingsShown = 8

// ParseSallyport reads a sallyport.yaml; name stands in messages. Errors: problem.Usage.
func ParseSallyport(name string, data []byte) (Sallyport, error) {
	var s Sallyport
	err := parse(source{name, edit(name)}, data, &s)
	return s, err
}

// ParsePolicy reads a policy.yaml; name stands in messages. Errors: problem.Usage.
func ParsePolicy(name string, data []byte) (Policy, error) {
	var p Policy
	err := parse(source{name, edit(name)}, data, &p)
	return p, err
}

// ParseRepository reads a .sallyport.yaml as it stands at a commit. Errors: problem.Usage.
func ParseRepository(commit string, data []byte) (Repository, error) {
	var r Repository
	err := parse(source{RepositoryFile, "git show " + commit + ":" + RepositoryFile}, data, &r)
	return r, err
}

// source is where data came from, and what to run to see it.
type source struct{ name, next string }

func edit(path string) string { return "${EDITOR:-vi} " + inert.Path(path) }

// parse sets the struct that into points to; on an error it is zero.
func parse(from source, data []byte, into any) error {
	v := reflect.ValueOf(into).Elem()
	b := &binder{}
	if n := b.document(data); n != nil && len(b.found) == 0 {
		b.structure(n, "", v)
	}
	if len(b.found) == 0 {
		return nil
	}
	v.SetZero()
	return from.refuse(b.found)
}

// document returns the one mapping of a file, nil if it is empty.
func (b *binder) document(data []byte) ast.Node {
	if why, at := unreadable(data); why != "" {
		b.found = append(b.found, finding{line: 1 + bytes.Count(data[:at], []byte("\n")), column: 1 + at - (1 + bytes.LastIndexByte(data[:at], '\n')), text: why})
		return nil
	}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		f := finding{line: 1, column: 1, text: "it is not YAML"}
		var y yaml.Error
		if errors.As(err, &y) {
			f.text = y.GetMessage()
			if tk := y.GetToken(); tk != nil && tk.Position != nil {
				f.line, f.column = tk.Position.Line, tk.Position.Column
			}
		}
		b.found = append(b.found, f)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		ast.Walk(foreign{b}, doc.Body)
		if body != nil {
			b.note(doc.Body, "", "there is a second document in the file; one is taken")
		}
		body = doc.Body
	}
	return body
}

// unreadable says why data is not given to the parser at all, and at which byte.
func unreadable(data []byte) (why string, at int) {
	if len(data) > FileBytesMax {
		return fmt.Sprintf("the file has %d bytes; %d is the limit", len(data), FileBytesMax), 0
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
			return fmt.Sprintf("it holds %U, which is not shown", r), i
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

// refuse says all that is wrong, a line each.
func (s source) refuse(found []finding) error {
	var lines []string
	for i, f := range found {
		if i == findingsShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(found)-findingsShown))
			break
		}
		where := fmt.Sprintf("%s:%d:%d: ", s.name, f.line, f.column)
		if f.path != "" {
			where += f.path + ": "
		}
		lines = append(lines, inert.Line(where+f.text))
	}
	return problem.Errorf(problem.Usage, s.next, "%s", strings.Join(lines, "\n"))
}
