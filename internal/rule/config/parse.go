package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/base/yamltext"
)

// depthMax bounds nesting; the files need three.
const depthMax = 32

// findingsShown is how many things that are wrong a message names.
const findingsShown = 8

// ParseSallyport reads a sallyport.yaml; name stands in messages. Errors: problem.Refused.
func ParseSallyport(name string, data []byte) (Sallyport, error) {
	var s Sallyport
	err := parse(source{name: name, next: edit(name)}, data, &s)
	return s, err
}

// ParsePolicy reads a policy.yaml; name stands in messages. Errors: problem.Refused.
func ParsePolicy(name string, data []byte) (Policy, error) {
	var p Policy
	err := parse(source{name: name, next: edit(name)}, data, &p)
	return p, err
}

// Check refuses what a home's sallyport.yaml or policy.yaml cannot say; name is which. Errors: problem.Refused.
func Check(name string, data []byte) error {
	if name == SallyportFile {
		_, err := ParseSallyport(name, data)
		return err
	}
	_, err := ParsePolicy(name, data)
	return err
}

// ParseRepository reads a .sallyport.yaml as it stands at a commit; mend is a command by which a person corrects it. Errors: problem.Refused.
func ParseRepository(mend string, data []byte) (Repository, error) {
	var r Repository
	err := parse(source{name: RepositoryFile, next: mend}, data, &r)
	return r, err
}

// source is where data came from, and what to run to correct it.
type source struct {
	name, next string
	given      bool // by the command line: what is wrong with it is wrong with that
}

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
	if why, at := yamltext.Unreadable(data, FileBytesMax, depthMax); why != "" {
		b.found = append(b.found, finding{line: 1 + bytes.Count(data[:at], []byte("\n")), column: 1 +
			at - (1 + bytes.LastIndexByte(data[:at], '\n')), text: why})
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
			b.note(doc.Body, "", "the file holds a second YAML document, and may hold one only")
		}
		body = doc.Body
	}
	return body
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
	kind := problem.Refused
	if s.given {
		kind = problem.Usage
	}
	return problem.Errorf(kind, s.next, "%w", &faults{line: found[0].line, text: strings.Join(lines, "\n")})
}

// faults are what is wrong in a file, the first in a line.
type faults struct {
	line int
	text string
}

func (f *faults) Error() string { return f.text }
